"""`serena-central languages doctor`: for each language of a project, whether its server is installed and runs.

It reads the project as the server would, with the same settings and the same files; no server has to run.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import anyio
import click

from serena_central.cli.exits import Unsuccessful
from serena_central.cli.given import GivenPath
from serena_central.cli.output import json_option, print_json, print_table
from serena_central.cli.progress import Progress
from serena_central.config.load import load_server_config, serena_home
from serena_central.config.policies import PoolPolicy
from serena_central.core.errors import ServerNotInstalled, ServerNotTrusted, ServerStartFailed
from serena_central.core.events import EventBus
from serena_central.core.paths import expanded
from serena_central.core.places import Places
from serena_central.core.progress import Listener
from serena_central.files.boundary import OPEN
from serena_central.files.tree import FileTree
from serena_central.files.watch import Watches
from serena_central.lsp.catalogue import ServerSpec
from serena_central.lsp.locate import locate
from serena_central.lsp.trial import try_out
from serena_central.pool.pool import LanguageServerPool
from serena_central.projects.languages.project_languages import ProjectLanguages
from serena_central.projects.root_policy import RootPolicy
from serena_central.projects.root_settings import RootSettings

NOT_TRUSTED = "not trusted"


class Finding(NamedTuple):
    """One language of the project. `program` is "" when none was found; `advice` is the one command that gets it.

    `optional`: the project does without the server where it is not installed, as one of markup or of a side language.
    `lacks` says what its answers may lack, since the project is not trusted; a server that is not run for that reason
    has the problem NOT_TRUSTED.
    """

    language: str
    files: int
    server: str
    runs: bool
    version: str = ""
    program: str = ""
    problem: str = ""
    advice: str = ""
    lacks: str = ""
    optional: bool = False


@click.command(
    name="doctor",
    epilog="Exits with 1 when a server of code is missing. Example: serena-central languages doctor ~/src/app",
)
@click.argument("project", default=".", type=GivenPath(exists=True, file_okay=False, path_type=Path))
@json_option
def doctor_command(*, project: Path, as_json: bool) -> None:
    """Show for each language of a project which server answers, and how to install it if it is missing."""
    with Progress() as progress:
        findings = anyio.run(look, project.resolve(), Places.of_user(), progress.says)
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        rows = [[one.language, one.files, one.server, _state(one), one.version or "-", _where(one)] for one in findings]
        print_table(
            ["LANGUAGE", "FILES", "SERVER", "STATE", "VERSION", "FOUND AT, OR HOW TO INSTALL"],
            rows,
            empty="No file here is in a supported language.",
        )
    if not all(finding.runs or _is_spared(finding) for finding in findings):
        raise Unsuccessful


async def look(root: Path, places: Places, says: Listener) -> list[Finding]:
    """The languages of a project's files, the most frequent first; their servers are really started, in turn.

    Raises:
        ProjectRefused: the server would not open it either.
    """
    server = load_server_config({})
    allowed = [expanded(folder).resolve() for folder in server.value.allowed_roots]
    RootPolicy(home=Path.home().resolve(), own=[places.home.resolve(), serena_home().resolve()], allowed=allowed).check(
        root
    )
    found = RootSettings(server, places).read(root)
    settings = found.value
    pool = LanguageServerPool(bus=EventBus(), places=places, policy=PoolPolicy())  # of which nothing is asked
    languages = ProjectLanguages(
        root,
        pool,
        places,
        trusted=found.trusted,
        access=OPEN,
        languages=settings.languages,
        chosen=settings.language_servers,
        users=server.value.language_servers,
        side_percent=settings.side_language_percent,
    )
    watches = Watches()
    tree = FileTree(
        root,
        watches,
        ignored_paths=settings.ignored_paths,
        ignore_all_files_in_gitignore=settings.ignore_all_files_in_gitignore,
    )
    says("listing the project's files", None)
    async with anyio.create_task_group() as tasks:
        await tasks.start(watches.run)
        await tasks.start(tree.run)
        tasks.cancel_scope.cancel()
    await languages.selection.count(await languages.selection.by_place(list(tree.files)))
    known = {path: language for path in tree.files if (language := languages.language_of(path))}
    files = Counter(known.values())
    one_of = {language: path for path, language in known.items()}
    findings: list[Finding] = []
    for language, count in files.most_common():
        path = one_of[language]
        spec = languages.spec_for(path)
        if spec is not None:
            says(f"trying {spec.name}", None)
            finding = await _look_at(spec, language, count, root, places, trusted=found.trusted)
            optional = not languages.selection.is_code_file(path) or languages.selection.is_left_alone(path)
            findings.append(finding._replace(optional=optional))
    return findings


async def _look_at(
    spec: ServerSpec, language: str, files: int, root: Path, places: Places, *, trusted: bool
) -> Finding:
    try:
        launch = locate(spec, root, places, untrusted=None if trusted else root)
    except ServerNotTrusted as error:
        return Finding(language, files, spec.name, runs=False, problem=NOT_TRUSTED, advice=error.how_to_get)
    except ServerNotInstalled as error:
        return Finding(language, files, spec.name, runs=False, problem="not installed", advice=error.how_to_get)
    try:
        version = await try_out(spec, launch, places.temporary)
    except ServerStartFailed as error:
        problem = str(error).splitlines()[0]
        return Finding(
            language,
            files,
            spec.name,
            runs=False,
            program=launch.command[0],
            problem=problem,
            advice=spec.how_to_get,
        )
    lacks = spec.untrusted.lacks if spec.untrusted and not trusted else ""
    return Finding(language, files, spec.name, runs=True, version=version, program=launch.command[0], lacks=lacks)


def _is_spared(finding: Finding) -> bool:
    return finding.optional and not finding.program and finding.problem != NOT_TRUSTED


def _state(finding: Finding) -> str:
    if _is_spared(finding):
        return "optional"
    if finding.runs:
        return "restricted" if finding.lacks else "runs"
    if finding.problem == NOT_TRUSTED:
        return "NOT RUN"
    return "FAILS" if finding.program else "MISSING"


def _where(finding: Finding) -> str:
    if finding.lacks:
        return f"{finding.program} (the project is not trusted: {finding.lacks})"
    if finding.runs:
        return finding.program
    there = f"{finding.program}: {finding.problem} Another one: " if finding.program else ""
    return there + finding.advice
