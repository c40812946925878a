"""What a project runs with, for its page: missing language servers, with their installation, and its settings."""

from pathlib import Path

import msgspec

from serena_central.config.describe import describe
from serena_central.core.event_kinds import ProjectEvent, ServerInstallEvent
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.installers.install import recipes_of
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.listing import Column, Columns, Heading
from serena_central.web.pages.page import Section, Visit, link
from serena_central.web.pages.projects import ONE, known
from serena_central.web.responses import NotFound


class MissingServer(msgspec.Struct, frozen=True):
    """A language server that the project misses. `progress` is of its installation, `failed` why the last one failed;
    `can_install`: the button installs it, else `how_to_get` says how."""

    name: str
    title: str
    how_to_get: str
    can_install: bool
    progress: str
    failed: str


class MissingServers(msgspec.Struct, frozen=True):
    root: str
    servers: list[MissingServer]


class OwnSetting(msgspec.Struct, frozen=True):
    """A setting that somebody has set; `value` is JSON."""

    key: str
    value: str
    origin: str
    description: str


class OwnSettings(msgspec.Struct, frozen=True):
    """Those of the project whose values are not the defaults. `problems` have no effect, and why."""

    columns: list[Heading]
    settings: list[OwnSetting]
    problems: list[str]
    change_url: str


COLUMNS = Columns[OwnSetting](
    {
        "key": Column("Setting", lambda one: one.key),
        "value": Column("Value", lambda one: one.value),
        "from": Column("From", lambda one: one.origin, "origin"),
    },
    parameter="settings",
)


async def missing(visit: Visit) -> MissingServers:
    root = visit.query.get("root", "")
    known(visit, root)
    project, installer = visit.parts.projects.opened(root), visit.parts.installer
    underway = {one.server: one for one in project.languages.availability.installing()} if project else {}
    return MissingServers(
        root,
        [
            MissingServer(
                name=spec.name,
                title=", ".join(sorted(spec.languages)) if spec.languages else spec.name,
                how_to_get=spec.how_to_get,
                can_install=bool(recipes_of(spec, installer.methods_of_people)),
                progress=underway[spec.name].text(visit.now)
                if spec.name in underway
                else f"installing {spec.name}"
                if installer.is_installing(spec)
                else "",
                failed=installer.failure(spec),
            )
            for spec in _missed(visit, root)
        ],
    )


def _missed(visit: Visit, root: str) -> list[ServerSpec]:
    """Servers that a project misses; while it is not open, as far as that was found when it was."""
    project = visit.parts.projects.opened(root)
    if project is not None:
        return project.languages.availability.missing()
    servers = catalogue().servers
    return [servers[server] for of, server in visit.parts.tally.missing if of == root and server in servers]


async def settings(visit: Visit) -> OwnSettings:
    root = visit.query.get("root", "")
    one = known(visit, root)
    loaded = visit.parts.root_settings.read(Path(one.root))
    rows = [
        OwnSetting(row.key, row.value, row.origin, row.description)
        for row in describe(loaded)
        if row.origin != "default"
    ]
    return OwnSettings(
        COLUMNS.headings(visit, ONE),
        COLUMNS.arranged(rows, visit),
        [str(problem) for problem in loaded.problems],
        link("/projects/one/settings", root=root),
    )


async def _install(visit: Visit, form: Form) -> str:
    """A person asks for it: whatever the setting auto_install says."""
    root, name = one_value(form, "root"), one_value(form, "server")
    one = known(visit, root)
    spec = next((spec for spec in _missed(visit, root) if spec.name == name), None)
    if spec is None:
        raise NotFound(f"{one.name} does not miss a language server {name!r}.")
    if not visit.parts.installer.install_for_person(spec):
        return f"{spec.name} can't be installed from here. To install it: {spec.how_to_get}"
    return f"{spec.name} is being installed; its progress is shown here."


ACTIONS: dict[str, Action] = {"/projects/install": _install}

MISSING = Section("project/_missing.html", missing, (ProjectEvent, ServerInstallEvent), every_s=2.0)
SETTINGS = Section("project/_settings.html", settings, (ProjectEvent,), every_s=60)
