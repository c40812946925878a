"""The page that changes a project's settings: they take effect at once, since the project reads them again.

A value is written into the file that holds it, else into `.serena/project.yml`, as an edit like any other: comments
stay, history has it, and it can be undone. What decides what is run (`trust`) is not changed here.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from serena_central.config.changing import with_value
from serena_central.config.describe import describe
from serena_central.config.layers import Loaded
from serena_central.config.model import Setting, settings_of
from serena_central.config.project_config import PROJECT_DIALECT
from serena_central.config.settings import ProjectSettings
from serena_central.core.errors import PathNotFound
from serena_central.core.tracing import new_call_id
from serena_central.editing.change import Author
from serena_central.files.text import FileText
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form, one_value
from serena_central.web.pages.page import Page, Section, Visit
from serena_central.web.pages.projects import ONE, known
from serena_central.web.pages.references import project_named, project_page
from serena_central.web.pages.setting_forms import as_text, checked, choices_of
from serena_central.web.responses import NotFound

PATH = f"{ONE}/settings"

FILE = ".serena/project.yml"

KEPT_OUT = frozenset({"python", "type", "default_module", "project_name"})
"""What names programs, and what other parts know the project by."""

TOOL = "change_setting"


class Changeable(msgspec.Struct, frozen=True):
    """A setting with its form. `value` is JSON, or a text as it is; `choices` are of a closed set of values."""

    key: str
    value: str
    choices: list[str]
    allowed: str
    description: str
    origin: str
    own: bool


class ProjectSettingsForm(msgspec.Struct, frozen=True):
    """`own` of a setting: it is set in a file of the project, and can be reset."""

    root: str
    project: str
    project_url: str
    settings: list[Changeable]


async def shown(visit: Visit) -> ProjectSettingsForm:
    one = known(visit, visit.query.get("root", ""))
    loaded = _loaded(visit, one.root)
    rows = {row.key: row for row in describe(loaded)}
    return ProjectSettingsForm(
        root=one.root,
        project=one.name,
        project_url=project_page(one.root),
        settings=[
            Changeable(
                key=key,
                value=as_text(json.loads(rows[key].value)),
                choices=choices_of(setting),
                allowed=setting.allowed,
                description=setting.description,
                origin=rows[key].origin,
                own=_file_of(loaded, key, one.root) is not None,
            )
            for key, setting in changeable().items()
            if key in rows
        ],
    )


def changeable() -> dict[str, Setting]:
    """The settings that this page changes: those with one value, and lists."""
    return {
        key: setting
        for key, setting in settings_of(ProjectSettings).items()
        if "." not in key and setting.merge != "entries" and not setting.secret and key not in KEPT_OUT
    }


def _loaded(visit: Visit, root: str) -> Loaded[ProjectSettings]:
    return visit.parts.root_settings.read(Path(root))


def _file_of(loaded: Loaded[ProjectSettings], key: str, root: str) -> str | None:
    """The project's own file that holds a value, root-relative."""
    for origin in reversed(loaded.origins.get(key, ())):
        if origin.kind == "file" and Path(origin.name).is_relative_to(root):
            return str(Path(origin.name).relative_to(root))
    return None


# --- actions ----------------------------------------------------------------------------------------------------------


async def _change(visit: Visit, form: Form) -> str:
    """Writes a value that is allowed; with `reset` removes it from the project's file."""
    one, key = known(visit, one_value(form, "root")), one_value(form, "key")
    setting = changeable().get(key)
    if setting is None:
        raise NotFound(f"The setting {key!r} can't be changed here.")
    value = None if one_value(form, "reset") else checked(setting, one_value(form, "value"))
    loaded = _loaded(visit, one.root)
    file = _file_of(loaded, key, one.root) or FILE
    project = await visit.parts.projects.open(Path(one.root))
    author = Author(session="dashboard", client="dashboard", tool=TOOL, call=new_call_id(), symbol=key)
    spellings = [name for name, (model_key, _) in PROJECT_DIALECT.spellings.items() if model_key == key]

    def plan(read: FileText) -> str:
        return _changed(read.text.content, key, spellings, value, file)

    try:
        try:
            edited = await project.edits.change_text(file, plan, author)
        except PathNotFound:
            edited = await project.edits.create_file(file, _changed("", key, [], value, file), author)
    finally:
        visit.parts.history.answered(author.call, None)
    if edited.id is None:
        return f"{key} has that value already."
    return f"{key} was {'reset' if value is None else 'changed'} in {file}. The edit {edited.id} can be undone."


def _changed(text: str, key: str, spellings: list[str], value: Any, file: str) -> str:
    """Of several spellings of a key only its own stays."""
    for spelling in spellings:
        text = with_value(text, spelling, None, file=file)
    return with_value(text, key, value, file=file)


ACTIONS: dict[str, Action] = {"/projects/change-setting": _change}

PAGE = Page(
    path=PATH,
    title="Settings of a project",
    template="project_settings.html",
    sections={"settings": Section("project_settings/_settings.html", shown)},
    in_navigation=False,
    names=project_named,
    live=False,
)
