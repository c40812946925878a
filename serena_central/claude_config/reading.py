"""One settings file as values that can be used: read, migrated, compared with the schema, checked, resolved."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from serena_central.claude_config.checks import check_settings
from serena_central.claude_config.document import Document
from serena_central.claude_config.migrations import migrate, rules_alone
from serena_central.claude_config.problems import KeyPath, Place, Problem, Severity
from serena_central.claude_config.schema import settings_schema
from serena_central.claude_config.shape import LEFT_OUT, Fitting
from serena_central.claude_config.substitution import PLACES, SERVER_PLACES, substitute
from serena_central.claude_config.tiers import Tier, TierFile
from serena_central.config.document import DocumentError, read_whole

_SERVER_PATHS: tuple[KeyPath, ...] = tuple(("mcpServers", "*", *place) for place in SERVER_PLACES)


class Settings(NamedTuple):
    """What one file says. `broken`: it can't be used as a whole, and `value` holds its rules alone, as far as they
    could be read."""

    file: TierFile
    value: dict[str, Any]
    document: Document
    problems: tuple[Problem, ...]
    broken: bool = False


def read_settings(file: TierFile, environment: Mapping[str, str]) -> Settings | None:
    """The settings in a file, None where there is none. Never raises."""
    try:
        text = read_whole(file.path, file.within)
    except DocumentError as error:
        document = Document(str(file.path), "")
        place = Place(str(file.path), error.line or 0, 1 if error.line else 0)
        problem = Problem(
            Severity.ERROR, place, "", f"the file {error.problem}", "it has no effect until this is fixed"
        )
        return Settings(file, {}, document, (problem,), broken=True)
    return None if text is None else read_text(file, text, environment)


def read_text(file: TierFile, text: str, environment: Mapping[str, str]) -> Settings:
    """The settings in a text that stands in a file, or is to. Never raises."""
    document = Document(str(file.path), text)
    known = migrate(document)
    broken = not document.complete or not known
    value = _fitting(document, file, broken=broken)
    if value is None:
        value, broken = {}, True
    elif not broken:
        value = _substituted(document, value, environment)
    return Settings(file, value, document, tuple(document.problems), broken)


def _fitting(document: Document, file: TierFile, *, broken: bool) -> dict[str, Any] | None:
    if broken:
        document.value = rules_alone(document.value)
    fitted = Fitting(document, settings_schema()).fit()
    if fitted is LEFT_OUT:
        return None
    value = cast("dict[str, Any]", fitted)
    if file.rules_only:
        value = {"permissions": value["permissions"]} if "permissions" in value else {}
    if "trust" in value and file.tier is not Tier.ENTERPRISE:
        del value["trust"]
        document.report(
            Severity.NOTE,
            ("trust",),
            "trust counts in managed settings alone",
            "your own choice is the setting trust in ~/.serena/serena_config.yml",
        )
    if value.get("mcpServers"):
        document.report(
            Severity.NOTE,
            ("mcpServers",),
            "Claude Code itself reads no servers in settings files since version 2.1.47; here they count",
            "move them to .mcp.json to have both",
        )
    return check_settings(document, value)


def _substituted(document: Document, value: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    broken_servers: set[str] = set()

    def undefined(path: KeyPath, name: str) -> None:
        document.report(
            Severity.ERROR,
            path,
            f"the variable {name} is not set, so that this has no effect",
            f"set {name} where the server is started, or give a default: ${{{name}:-…}}",
        )
        if path[0] == "mcpServers":
            broken_servers.add(str(path[1]))

    resolved = substitute(value, (*PLACES, *_SERVER_PATHS), environment, undefined)
    if broken_servers:
        servers: dict[str, Any] = resolved["mcpServers"]
        resolved["mcpServers"] = {name: entry for name, entry in servers.items() if name not in broken_servers}
    return resolved
