"""`serena-central hooks replay`: which recorded calls a rule would have stopped. Nothing is run.

Recorded arguments are shortened, and secrets are masked in them: where a rule looks at what is left of them, the call
is listed as one that may match.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from serena_central.claude_config.rules import BadRule, parse_rule
from serena_central.cli.given import GivenPath
from serena_central.cli.hook_uses import use_of
from serena_central.cli.output import json_option, print_json, print_table, printable
from serena_central.cli.remote import Remote, named
from serena_central.cli.trust import project_root
from serena_central.cli.usage import start_of
from serena_central.core.clock import utc
from serena_central.core.errors import ConfigError
from serena_central.core.masking import MASK
from serena_central.core.patterns import BoundedMatcher
from serena_central.gates.matching import Matcher, is_rule, matcher_of
from serena_central.store.rows import WITHHELD
from serena_central.tools.call_details import main_argument

PAGE = 500

MOST_CALLS = 20_000
"""Looked at, the newest first."""

SHOWN_CHARS = 80


class Replayed(NamedTuple):
    """A recorded call. `sure`: the rule matches whatever is not known of its arguments."""

    call: dict[str, Any]
    files: list[str]
    sure: bool


@click.command("replay", epilog="Example: serena-central hooks replay 'Bash(git push:*)' --since 7d")
@click.argument("rule")
@click.option("--since", metavar="DATE", help="Only since this day (YYYY-MM-DD), or the last days (7d).")
@click.option(
    "--project", "folder", type=GivenPath(path_type=Path), help="The project; else the one around the current folder."
)
@json_option
def replay(*, rule: str, since: str | None, folder: Path | None, as_json: bool) -> None:
    """Show which recorded calls a gate with the matcher RULE would have stopped. No hook and no tool runs."""
    root = project_root(folder).resolve()
    matches, start = _matcher(rule, root), start_of(since, datetime.now(UTC))
    looked, found, more = _replayed(Remote(), root, rule.strip(), matches, start)
    if as_json:
        print_json(
            {
                "rule": rule,
                "root": str(root),
                "looked_at": looked,
                "stopped": [_as_json(one) for one in found if one.sure],
                "unsure": [_as_json(one) for one in found if not one.sure],
                "more": more,
            }
        )
        return
    print_table(
        ["TIME", "SESSION", "TOOL", "ABOUT", "MATCHES"],
        [tuple(map(printable, _row(one))) for one in found],
        empty="It would have stopped no recorded call.",
    )
    unsure = sum(not one.sure for one in found)
    click.echo(
        f"{len(found) - unsure} of {looked} recorded calls would have been stopped"
        + (f"; of {unsure} more that is not known, since their arguments are kept in part only." if unsure else ".")
        + (f" Older calls were not looked at: the limit is {MOST_CALLS}." if more else "")
    )


def _matcher(rule: str, root: Path) -> Matcher:
    """Raises click.BadParameter: what a matcher that can't be understood does (it matches all) is of no use here."""
    try:
        if is_rule(rule.strip()):
            parse_rule(rule.strip())
        else:
            BoundedMatcher("RULE", rule.replace("*", ".*"))
    except (BadRule, ConfigError) as error:
        raise click.BadParameter(f"{error}.", param_hint="RULE") from error
    return matcher_of(rule, root, Path.home())


def _replayed(
    remote: Remote, root: Path, rule: str, matches: Matcher, since: datetime | None
) -> tuple[int, list[Replayed], bool]:
    looked, found = 0, list[Replayed]()
    by_path = is_rule(rule) and not rule.startswith("Bash(")
    for call in _calls(remote, since):
        if str(root) not in call.get("roots", ()):
            continue
        if looked == MOST_CALLS:
            return looked, found, True
        looked += 1
        arguments: dict[str, Any] = call.get("arguments", {})
        use = use_of(call["tool"], arguments, root)
        files = _edited(remote, call["id"]) if by_path and use.effect == "edit" else []
        if files:
            use = use_of(call["tool"], arguments, root, files)
        if matches(use.names, use):
            found.append(Replayed(call, files, sure=True))
        elif use.effect == "run" and _is_partial(arguments) and is_rule(rule) and rule.startswith("Bash("):
            found.append(Replayed(call, files, sure=False))
    return looked, found, False


def _calls(remote: Remote, since: datetime | None) -> Iterator[dict[str, Any]]:
    """Recorded calls, the newest first."""
    cursor: str | None = None
    while True:
        page = remote.get(
            "/api/v1/calls", since=since.timestamp() if since is not None else None, limit=PAGE, cursor=cursor
        )
        yield from page["calls"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def _edited(remote: Remote, call: str) -> list[str]:
    return list(remote.get(named("/api/v1/calls", call))["files"])


def _is_partial(arguments: dict[str, Any]) -> bool:
    """Whether something of what was recorded was cut or masked."""
    text = json.dumps(arguments, ensure_ascii=False)
    return MASK in text or WITHHELD in text or "… (" in text


def _as_json(one: Replayed) -> dict[str, Any]:
    call = {key: one.call[key] for key in ("id", "at", "session", "tool", "outcome")}
    return {**call, "arguments": one.call.get("arguments", {}), "files": one.files}


def _row(one: Replayed) -> tuple[str, ...]:
    about = ", ".join(one.files) or main_argument(one.call.get("arguments", {}))
    shown = about if len(about) <= SHOWN_CHARS else f"{about[:SHOWN_CHARS]}…"
    return utc(one.call["at"]), one.call["session"], one.call["tool"], shown, "yes" if one.sure else "perhaps"
