"""The doctor's checks of language servers: which are installed, and whether they run."""

from pathlib import Path

import anyio

from serena_central.cli.checks.check import Check, failed, info, ok, warning
from serena_central.core.errors import ServerNotInstalled, ServerStartFailed
from serena_central.core.places import Places
from serena_central.lsp.catalogue import ServerSpec, catalogue
from serena_central.lsp.locate import Launch, locate
from serena_central.lsp.trial import try_out

AT_ONCE = 4
"""Servers that are tried at the same time."""


async def check_languages(places: Places) -> list[Check]:
    """One line for each server that is here or has to be, and one that names all others."""
    found: dict[str, tuple[ServerSpec, Launch]] = {}
    missing: list[ServerSpec] = []
    for spec in catalogue().servers.values():
        if spec.launch.connect:
            continue  # no program of ours: it runs or not, as its user likes
        try:
            found[spec.name] = spec, locate(spec, Path("/"), places, untrusted=None)
        except ServerNotInstalled:
            missing.append(spec)
    lines = [
        failed(_name(spec), "is missing, although it is bundled with serena-central", spec.how_to_get)
        for spec in missing
        if spec.bundled
    ]
    tried: dict[str, Check | None] = {}
    places_free = anyio.CapacityLimiter(AT_ONCE)

    async def try_one(spec: ServerSpec, launch: Launch) -> None:
        async with places_free:
            tried[spec.name] = await _tried(spec, launch, places)

    async with anyio.create_task_group() as tasks:
        for spec, launch in found.values():
            tasks.start_soon(try_one, spec, launch)
    lines += [check for name in found if (check := tried[name])]
    if others := sum(1 for spec in missing if not spec.bundled) + list(tried.values()).count(None):
        says = f"{others} are not installed; `serena-central languages list` shows how to install them"
        lines.append(info("other language servers", says))
    return lines


async def _tried(spec: ServerSpec, launch: Launch, places: Places) -> Check | None:
    """None for one that turns out not to be here: only the language is that it is written in."""
    program = launch.command[0]
    try:
        version = await try_out(spec, launch, places.temporary)
    except OSError as error:
        advice = "free disk space, and see that the folder for temporary files can be written"
        return warning(_name(spec), f"{program} was not tried: {(error.strerror or str(error)).lower()}", advice)
    except ServerStartFailed as error:
        if spec.launch.hosted:
            return None
        advice = f"reinstall it: {spec.how_to_get}"
        says = f"{program} was found but does not run: {str(error).splitlines()[0]}"
        return failed(_name(spec), says, advice) if spec.bundled else warning(_name(spec), says, advice)
    return ok(_name(spec), f"{program} {version} runs".replace("  ", " "))


def _name(spec: ServerSpec) -> str:
    return f"{spec.name} ({', '.join(spec.languages)})"
