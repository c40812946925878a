"""The section that starts analysis runs of a project, and shows their progress and age."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from serena_central.analysis.analysis_run import AnalysisRun, FindingsRun, GraphRun, Kind
from serena_central.analysis.analysis_runs import AnalysisRuns
from serena_central.core.errors import SerenaCentralError
from serena_central.core.event_kinds import AnalysisEnded, ProjectEvent
from serena_central.core.words import counted
from serena_central.web.pages.endpoints import Action
from serena_central.web.pages.forms import Form
from serena_central.web.pages.page import Section, Visit, link
from serena_central.web.pages.projects import ONE, known
from serena_central.web.pages.rendering import bounded
from serena_central.web.responses import NotFound

GRAPH = f"{ONE}/graph"
FINDINGS = f"{ONE}/findings"

NOTE_CHARS = 300

TITLES: dict[Kind, str] = {"graph": "Graph", "findings": "Findings"}


class Task(msgspec.Struct, frozen=True):
    """A kind of analysis run: the last one, if there is one (`at`, whether code has `changed` since: None if unknown,
    what was `found`), and the one that runs, or why it ended without a result. `share` is in percent."""

    kind: str
    title: str
    url: str
    found: str
    at: float | None
    changed: bool | None
    running: bool
    began: float | None
    says: str
    share: float | None
    failure: str


class Work(msgspec.Struct, frozen=True):
    root: str
    tasks: list[Task]


def root_of(visit: Visit) -> Path:
    """The root that the query names.

    Raises:
        NotFound
    """
    return Path(known(visit, visit.query.get("root", "")).root)


async def work(visit: Visit) -> Work:
    root = root_of(visit)
    return Work(str(root), [await _task(visit.parts.analysis_runs, root, kind) for kind in TITLES])


async def _task(analysis_runs: AnalysisRuns, root: Path, kind: Kind) -> Task:
    job, failure = analysis_runs.job(root, kind), ""
    running = job is not None and not job.done
    analysis_run: AnalysisRun | None = None
    try:
        analysis_run = await (analysis_runs.graph(root) if kind == "graph" else analysis_runs.findings(root))
    except SerenaCentralError as error:  # its host is lost, say; the rest of the page is shown nonetheless
        failure = f"The last one can't be shown: {error}"
    changed = await analysis_runs.changed_since(analysis_run) if analysis_run else None
    return Task(
        kind=kind,
        title=TITLES[kind],
        url=link(GRAPH if kind == "graph" else FINDINGS, root=str(root)),
        found=_found(analysis_run),
        at=round(analysis_run.at) if analysis_run else None,
        changed=changed,
        running=running,
        began=round(job.began) if job and running else None,
        says=job.says if job and running else "",
        share=round(100 * job.part, 1) if job and running and job.part is not None else None,
        failure=failure or (job.failure if job and not running else ""),
    )


def _found(analysis_run: AnalysisRun | None) -> str:
    match analysis_run:
        case GraphRun():
            return counted(len(analysis_run.files), "file")
        case FindingsRun():
            certain = sum(one.certainty == "certain" for one in analysis_run.broken)
            return f"{counted(certain, 'broken reference')}, {counted(len(analysis_run.unused), 'unused symbol')}"
        case _:
            return ""


def told(notes: Sequence[str], most: int, command: str) -> list[str]:
    """The first of an analysis run's notes, and which command tells the others."""
    shown = [bounded(text, NOTE_CHARS) for text in notes[:most]]
    more = len(notes) - most
    return [*shown, f"{counted(more, 'further note')}: {command} shows all."] if more > 0 else shown


WORK = Section("graph/_work.html", work, (AnalysisEnded, ProjectEvent), every_s=1)


# --- actions ----------------------------------------------------------------------------------------------------------


def _asked(visit: Visit, form: Form) -> tuple[Path, Kind]:
    (root, *_), (kind, *_) = form.get("root", [""]), form.get("kind", [""])
    if kind not in TITLES:
        raise NotFound(f"There is no analysis of the kind {kind!r}.")
    return Path(known(visit, root).root), kind


async def _start(visit: Visit, form: Form) -> str:
    root, kind = _asked(visit, form)
    visit.parts.analysis_runs.start(visit.parts.projects.check(root), kind)
    return f"{TITLES[kind]}: running. Other callers' requests take priority."


async def _cancel(visit: Visit, form: Form) -> str:
    root, kind = _asked(visit, form)
    if not visit.parts.analysis_runs.cancel(root, kind):
        return "This run has already ended."
    return f"{TITLES[kind]}: cancelled. The result so far is kept, and the next run resumes there."


ACTIONS: dict[str, Action] = {f"{ONE}/analysis": _start, f"{ONE}/analysis/cancel": _cancel}
