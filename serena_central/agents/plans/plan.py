"""Plans: waves of tasks one after another, with checks between them, as a YAML file writes them.

Pure. Problems carry the file and the line; a plan with errors is not run.
"""

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta
from msgspec.structs import fields

from serena_central.claude_config.problems import Place, Problem, Severity, brief
from serena_central.config.document import DocumentError, parse_document
from serena_central.core.decoding import converted
from serena_central.core.words import whole_number

MOST_WAVES = 50
MOST_TASKS = 100
"""Of one wave."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"

BUILT_IN = ("no-new-errors", "no-broken-references", "no-unused-symbols")

REFERENCE = re.compile(r"\$\{waves\.([^}]*)\}")
"""In an instruction: what an earlier wave came to."""

Name = Annotated[str, Meta(pattern=NAME)]
Seconds = Annotated[float, Meta(gt=0, le=604_800)]


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One task of a wave."""

    name: Annotated[Name | None, Meta(description="Unique in its wave; without one: its number")] = None
    instruction: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200_000,
            description="${waves.1.results}, ${waves.NAME.tasks.NAME}, ${waves.1.verified} and ${waves.1.file} stand "
            "for what earlier waves came to",
        ),
    ]
    agent: Annotated[str, Meta(description="Agent definition to use")] = ""
    runner: str = ""
    model: str = ""
    timeout_s: Seconds | None = None
    max_tokens: Annotated[int, Meta(gt=0)] | None = None
    max_usd: Annotated[float, Meta(gt=0)] | None = None
    targets: Annotated[
        list[str],
        Meta(
            max_length=200,
            description="What it will change: files, folders, name paths of symbols, or FILE#NAME_PATH. Tasks of a "
            "wave whose targets meet run one after another",
        ),
    ] = []


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command line that must end with exit code 0."""

    command: Annotated[str, Meta(min_length=1, max_length=100_000, description="Run by a shell in the project's root")]
    timeout_s: Seconds = 600.0


class Approval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's approval. The plan waits for it, also across restarts."""

    approval: Annotated[str, Meta(min_length=1, max_length=2000, description="What the person is asked")]


BuiltIn = Literal["no-new-errors", "no-broken-references", "no-unused-symbols"]
Check = BuiltIn | Command | Approval


class Wave(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks that run at the same time, and what must hold after them."""

    name: Annotated[Name | None, Meta(description="Unique in the plan; without one: its number")] = None
    tasks: Annotated[list[PlannedTask], Meta(min_length=1, max_length=MOST_TASKS)]
    checks: Annotated[
        list[BuiltIn | dict[str, Any]],
        Meta(
            max_length=50,
            description="After the tasks, in this order: a built-in check, {command: …}, or {approval: …}",
        ),
    ] = []
    transaction: Annotated[
        bool | None,
        Meta(
            description="Undo all edits of the wave if a task or check of it fails, or if it brings errors or breaks "
            "references. Default: as the plan"
        ),
    ] = None
    allow_failures: Annotated[bool, Meta(description="Go on although a task failed")] = False


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Waves of tasks, one after another."""

    name: Name
    project: Annotated[str, Meta(description="Name or root; default: the folder that you work in")] = ""
    transaction: bool = False
    share: Annotated[
        tuple[Literal["memory", "claude-md"], ...],
        Meta(
            description="Where results of a wave are written besides the plan's own folder: memories "
            "plans/NAME/wave-N, and a section of CLAUDE.md"
        ),
    ] = ("memory",)
    waves: Annotated[list[Wave], Meta(min_length=1, max_length=MOST_WAVES)]

    def is_transaction(self, wave: Wave) -> bool:
        return self.transaction if wave.transaction is None else wave.transaction

    def commands(self) -> list[str]:
        """All command lines of its checks."""
        found = (check for wave in self.waves for check in checks_of(wave))
        return [check.command for check in found if isinstance(check, Command)]


class BadPlan(Exception):
    """The plan can't be run. `problems` are its errors."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def schema() -> dict[str, Any]:
    """The JSON schema of plan files."""
    found: dict[str, Any] = msgspec.json.schema(Plan)
    checks = found["$defs"]["Wave"]["properties"]["checks"]
    own = [cast("dict[str, Any]", msgspec.json.schema(one)["$defs"][one.__name__]) for one in (Command, Approval)]
    checks["items"] = {"anyOf": [{"enum": list(BUILT_IN)}, *own]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A serena-central plan: waves of tasks",
        **found,
    }


def checks_of(wave: Wave) -> list[Check]:
    """The checks after a wave, of a plan that was checked."""
    return [one if isinstance(one, str) else _check(one) for one in wave.checks]


def _check(one: Mapping[str, Any]) -> Command | Approval:
    return converted(one, Approval if "approval" in one else Command)


def task_name(task: PlannedTask, number: int) -> str:
    """How a task of a wave is called; `number` counts from 1."""
    return task.name or str(number)


def parse_plan(text: str, file: str) -> Plan:
    """The plan in a file's text.

    Raises:
        BadPlan
    """
    try:
        found = parse_document(text, items=True)
    except DocumentError as error:
        raise BadPlan([Problem(Severity.ERROR, Place(file, error.line or 1), "", error.problem)]) from error
    if found.repeated:
        reading = _Reading(file, found.lines)
        for key in found.repeated:
            reading.report(key, "is given twice; the last would count", "remove one")
        raise BadPlan(reading.problems)
    return read_plan(found.values, file, found.lines)


def problem_in(text: str, file: str, key: str, what: str) -> Problem:
    """What is wrong with a plan that `parse_plan` has read, with the line of the dotted key."""
    reading = _Reading(file, parse_document(text, items=True).lines)
    reading.report(key, what)
    return reading.problems[0]


def read_plan(values: Any, file: str = "", lines: Mapping[str, int] | None = None) -> Plan:
    """A plan from plain values; `lines`: dotted key → 1-based line.

    Raises:
        BadPlan
    """
    reading = _Reading(file, lines or {})
    reading.struct(Plan, values, "")
    if not reading.problems:
        plan = converted(values, Plan)
        reading.names(plan)
        reading.references(plan)
        if not reading.problems:
            return plan
    raise BadPlan(reading.problems)


class _Reading:
    def __init__(self, file: str, lines: Mapping[str, int]) -> None:
        self._file = file
        self._lines = lines
        self.problems: list[Problem] = []

    def report(self, key: str, text: str, remedy: str = "") -> None:
        near = key
        while near and near not in self._lines:
            near = near.rpartition(".")[0]
        line = self._lines.get(near, 1)
        place = Place(self._file, line if self._lines else 0, 1)
        shown = re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", key)
        self.problems.append(Problem(Severity.ERROR, place, shown, text, remedy))

    def struct(self, kind: type[msgspec.Struct], given: object, at: str) -> None:
        if not isinstance(given, dict):
            self.report(at, "must be a mapping of keys to values")
            return
        values = cast("dict[object, Any]", given)
        known = {one.encode_name: one for one in fields(kind)}
        for key in values:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, 1)
                remedy = f"do you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                self.report(_below(at, str(key)), f"{brief(str(key))} is not known", remedy)
        for name, one in known.items():
            if name in values:
                self._value(one.type, values[name], _below(at, name))
            elif one.required:
                self.report(at, f"{name} is missing")

    def _value(self, kind: Any, value: object, at: str) -> None:
        nested = {"waves": Wave, "tasks": PlannedTask}.get(at.rpartition(".")[2])
        if isinstance(value, list) and (nested is not None or at.endswith(".checks")):
            items = cast("list[object]", value)
            for number, item in enumerate(items):
                if nested is not None:
                    self.struct(nested, item, _below(at, str(number)))
                else:
                    self._check(item, _below(at, str(number)))
            if len(items) in range(1, MOST_WAVES + 1) or nested is None:
                return
        try:
            converted(value, kind)
        except msgspec.ValidationError as error:
            self.report(at, _plain(str(error)))

    def _check(self, item: object, at: str) -> None:
        if isinstance(item, str):
            if item not in BUILT_IN:
                near = difflib.get_close_matches(item, BUILT_IN, 1)
                remedy = f"do you mean {near[0]}?" if near else f"{', '.join(BUILT_IN)}, or {{command: …}}"
                self.report(at, f"{brief(item)} is no built-in check", remedy)
        elif isinstance(item, dict) and ("approval" in item) != ("command" in item):
            self.struct(Approval if "approval" in item else Command, cast("object", item), at)
        else:
            self.report(at, "must be a built-in check, {command: …} or {approval: …}")

    def names(self, plan: Plan) -> None:
        """Names are unique, and none is the number of another."""
        self._unique([wave.name or str(number) for number, wave in enumerate(plan.waves, 1)], "waves")
        for number, wave in enumerate(plan.waves):
            self._unique([task_name(task, at) for at, task in enumerate(wave.tasks, 1)], f"waves.{number}.tasks")
            for at, task in enumerate(wave.tasks):
                if not task.instruction.strip():
                    self.report(f"waves.{number}.tasks.{at}.instruction", "says nothing")

    def _unique(self, names: list[str], at: str) -> None:
        for number, name in enumerate(names):
            if name in names[:number] or whole_number(name) not in (None, number + 1):
                why = "is given twice" if name in names[:number] else "would be taken for a number"
                self.report(f"{at}.{number}.name", f"{brief(name)} {why}", "give each its own name")

    def references(self, plan: Plan) -> None:
        """What instructions refer to lies in earlier waves."""
        for number, wave in enumerate(plan.waves):
            for at, task in enumerate(wave.tasks):
                for found in REFERENCE.finditer(task.instruction):
                    if why := unknown_reference(found[1], plan.waves[:number]):
                        self.report(f"waves.{number}.tasks.{at}.instruction", f"{found[0]}: {why}")


def unknown_reference(reference: str, earlier: list[Wave]) -> str:
    """Why `1.results` means nothing with these waves before; "" if it does."""
    wave_name, _, what = reference.partition(".")
    index = wave_index(wave_name, earlier)
    if index is None:
        names = ", ".join(wave.name or str(number) for number, wave in enumerate(earlier, 1))
        return f"no earlier wave is named {brief(wave_name)}; earlier waves: {names or 'none'}"
    if what in ("results", "verified", "file"):
        return ""
    kind, _, task = what.partition(".")
    names = [task_name(one, number) for number, one in enumerate(earlier[index].tasks, 1)]
    if kind == "tasks" and task_index(task, earlier[index].tasks) is not None:
        return ""
    return f"of a wave there are results, verified, file and tasks.NAME; its tasks: {', '.join(names)}"


def task_index(name: str, tasks: list[PlannedTask]) -> int | None:
    """Which of a wave's tasks a name or a number from 1 means."""
    return next((at for at, one in enumerate(tasks) if name in (one.name, str(at + 1))), None)


def wave_index(name: str, waves: list[Wave]) -> int | None:
    """Which of the waves a name or a number from 1 means."""
    for index, wave in enumerate(waves):
        if name in (wave.name, str(index + 1)):
            return index
    return None


def _below(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _plain(error: str) -> str:
    return error.partition(" - at ")[0].replace("`", "")
