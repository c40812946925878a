"""`serena-central trust`: shows what a repository can make this machine run, and asks whether it may.

It writes the approvals itself: no server has to run, and one that runs goes by them from the next call on.
"""

import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from serena_central.claude_config.locations import FOLDER
from serena_central.cli.given import GivenPath, check_is_reachable
from serena_central.cli.output import age, json_option, print_json, print_table, printable, user_label
from serena_central.config.load import load_server_config
from serena_central.core.errors import TrustRefused
from serena_central.core.owners import put_above
from serena_central.core.paths import expanded
from serena_central.core.places import Places
from serena_central.projects.root_policy import has_marker
from serena_central.projects.root_settings import RootSettings
from serena_central.projects.trust.trust_decisions import MEANING, Standing, State, Trust

EXAMPLES = """\b
Examples:
  serena-central trust                 the repository around the current folder
  serena-central trust --show ~/src/app
  serena-central trust --list
Whole folders are trusted by your settings: trusted_roots: ["~/src/mine/*"]
"""


@click.command(epilog=EXAMPLES)
@click.argument("folder", metavar="[DIR]", required=False, type=GivenPath(path_type=Path))
@click.option("--show", is_flag=True, help="Show what it can execute and whether it is trusted.")
@click.option("--revoke", is_flag=True, help="Revoke the trust.")
@click.option("--list", "listing", is_flag=True, help="List trusted repositories.")
@click.option("--yes", is_flag=True, help="Trust it without a prompt, for scripts.")
@json_option
def command(*, folder: Path | None, show: bool, revoke: bool, listing: bool, yes: bool, as_json: bool) -> None:
    """Trust a repository: let its settings name programs, and its tools execute what is in it.

    Whatever executes nothing works without trust. A super-repo's modules are trusted with it.
    """
    if sum((show, revoke, listing, yes)) > 1:
        raise click.UsageError("--show, --revoke, --list and --yes are mutually exclusive.")
    settings = RootSettings(loaded := load_server_config({}), Places.of_user())
    if listing:
        _list(settings.trust, loaded.value.trusted_roots, as_json=as_json)
        return
    root = project_root(folder)
    repo = settings.super_repos.at(root)
    roots = [root, *(module.root for module in repo.modules.values())] if repo else [root]
    if revoke:
        _revoke(settings.trust, roots, as_json=as_json)
        return
    found = [settings.trust.standing(one) for one in roots]
    if as_json and (show or not yes):
        print_json([_as_json(one) for one in found])
    elif not as_json:
        _show(found)
        for one in roots:
            if (above := settings.strangers_above(one)) is not None:
                _say(f"\nLanguage servers of {one} stay restricted, trusted or not: {put_above(one, above)}")
    if not show:
        _trust(settings.trust, found, yes=yes, as_json=as_json)


def project_root(named: Path | None) -> Path:
    """The folder named, else the project around the current one, else that itself."""
    given = named or Path.cwd()
    check_is_reachable(given)
    here = expanded(given).resolve()
    if not here.is_dir():
        raise click.BadParameter(f"There is no folder {here}.")
    home = Path.home().resolve()
    if named is None:
        around = (at for at in (here, *here.parents) if not home.is_relative_to(at))
        here = next((at for at in around if has_marker(at)), here)
    if home.is_relative_to(here):
        raise TrustRefused(f"{here} is your home folder or above it, not a project. Name a repository.")
    return here


@contextmanager
def trust_kept(file: Path, before: str | None, after: str | None) -> Generator[None]:
    """Around a person's own change of a repository's settings from one text to another (None: no file): who trusted it
    with the one trusts it with the other. What else has changed since then, or meanwhile and be it in the same file, is
    still asked about."""
    # Late: other commands ask about trust and don't read settings.
    from serena_central.claude_config.executable import executable_text

    def having(standing: Standing, text: str | None) -> Mapping[str, str]:
        return {**_texts(standing), str(file): executable_text(file, text or "")}

    root = (file.parent.parent if file.parent.name == FOLDER else file.parent).resolve()
    trust = RootSettings(load_server_config({}), Places.of_user()).trust
    was = trust.standing(root)
    yield
    now = trust.standing(root)
    if (
        was.state is State.APPROVED
        and now.state is State.CHANGED
        and having(was, before) == {str(file): "", **_texts(was)}
        and having(was, after) == {str(file): "", **_texts(now)}
    ):
        trust.approve(root, now.digest, by=f"{user_label()}, who changed {file.name} at the command line")


def _texts(standing: Standing) -> dict[str, str]:
    return {part.place: part.text for part in standing.parts}


def _show(found: Sequence[Standing]) -> None:
    for one in found:
        _say(f"{one.root}: {one.state}")
    click.echo(f"\n{MEANING}")
    for one in found:
        if one.state is State.CHANGED and one.approval:
            _say(f"\nWhat changed in {one.root} since it was trusted, {age(one.approval.at)} ago:\n")
            _say(one.difference())
        if one.parts:
            _say(f"\nWhat {one.root} names:\n")
            _say(one.shown())
        else:
            _say(f"\n{one.root} names no programs, hooks, servers or settings of language servers.")


def _trust(trust: Trust, found: Sequence[Standing], *, yes: bool, as_json: bool) -> None:
    wanted = [one for one in found if not one.trusted]
    if not wanted:
        return
    if wanted[0].state is State.NEVER:
        trust.keep(wanted[0], "")  # raises, with who says so
    root, by = found[0].root, f"{user_label()}, at the command line"
    if yes:
        by += " with --yes"
    elif as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise TrustRefused(f"{root} is not trusted, and this is not a terminal. Review it and pass --yes.")
    else:
        click.echo()
        if not click.confirm(printable(f"Trust {root}?" if len(wanted) == 1 else f"Trust {root} and its modules?")):
            click.echo("It remains restricted.")
            return
    approved = [trust.approve(one.root, one.digest, by=by) for one in wanted]
    if as_json:
        print_json([_as_json(one) for one in approved])
        return
    for one in approved:
        _say(f"{one.root}: {one.state}")
    click.echo("A running server applies it from the next call on. Undo with --revoke.")


def _revoke(trust: Trust, roots: Iterable[Path], *, as_json: bool) -> None:
    revoked = {one: trust.revoke(one) for one in roots}
    if as_json:
        print_json([_as_json(trust.standing(one)) for one in revoked])
        return
    for root, was in revoked.items():
        now = trust.standing(root)
        if now.state is State.SETTINGS:
            _say(f"{root}: still trusted by trusted_roots in your settings")
        elif now.state in (State.ALWAYS, State.NEVER):
            _say(f"{root}: {now.state}")
        else:
            _say(f"{root}: {now.state} any more" if was else f"{root}: was not trusted")


def _list(trust: Trust, trusted_roots: Iterable[str], *, as_json: bool) -> None:
    approved = [(one, trust.standing(Path(one.root))) for one in trust.approvals()]
    if as_json:
        print_json({"trusted_roots": list(trusted_roots), "approved": [_as_json(standing) for _, standing in approved]})
        return
    rows = [(one, "in your settings", "", "trusted_roots") for one in trusted_roots]
    rows += [(one.root, str(standing.state), age(one.at), one.by) for one, standing in approved]
    print_table(
        ["ROOT", "STATE", "SINCE", "BY"], rows, empty="No repository is trusted. Use `serena-central trust DIR`."
    )


def _as_json(one: Standing) -> dict[str, Any]:
    return {
        "root": str(one.root),
        "state": one.state.name.lower(),
        "trusted": one.trusted,
        "digest": one.digest,
        "parts": [{"source": part.source, "place": part.place, "text": part.text} for part in one.parts],
        "difference": one.difference(),
        "approved_at": one.approval.at if one.approval else None,
        "approved_by": one.approval.by if one.approval else None,
    }


def _say(text: str) -> None:
    """Lines that a repository has written: nothing but printable characters reaches the terminal."""
    for line in text.split("\n"):
        click.echo(printable(line))
