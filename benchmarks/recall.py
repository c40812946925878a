"""Rows about completeness and precision: of the uses that others prove, how many are answered or at least announced; of
what is answered, how much do others confirm.

Two judges, which have nothing in common with the server that answers: Python's own parser proves the uses of names that
are defined once (`names`), and basedpyright says where a place leads (`judge`). A use counts as *answered* when its
line is among the references, and as *announced* when the notes count a possible reference or an unexamined place for
it.
"""

import json
import re
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.bench import Bench, Server
from benchmarks.django import BUILD
from benchmarks.judge import Judge, judging
from benchmarks.names import Defined, Place, Use, sample_of
from benchmarks.table import Row

RICH = "14.0.0"

WHOLE, WHOLE_CHARS = 1_000, 1_000_000
"""More than any answer of the sample has: pages would be taken for missing references."""

_POSSIBLE = re.compile(r"Possible references[^:]*: (\d+) place")
_UNEXAMINED = re.compile(r"occurs in (\d+) further place")
_LINE = re.compile(r"^ {2}> *(\d+):", re.MULTILINE)

Verdict = Literal["confirmed", "open", "elsewhere", "no such name"]
"""What the judge says of an answered line: it leads to the symbol, it can't tell, it leads to something else."""


class Found(NamedTuple):
    """Of one symbol, or of some of its uses. `proven`: uses that a judge proves, of which `answered` are answered and
    `announced` at most announced. `doubted`: answered lines that lead elsewhere in the judge's eyes and are not proven
    by the parser."""

    proven: int
    answered: int
    announced: int
    verdicts: Counter[Verdict]
    doubted: int


def recalling(bench: Bench) -> Iterator[Row]:
    for title, root in (("Django 5.2", bench.django), (f"rich {RICH}", _rich())):
        sample = sample_of(root)
        server = Server(bench.fresh_home("recall"), SERENA_CENTRAL_TRUSTED_ROOTS=str(root))
        try:
            answers = [_answer(root, server, one) for one in sample]
        finally:
            server.stop()
        with judging(root, bench.fresh_home("judge")) as judge:
            by_kind: dict[str, list[Found]] = defaultdict(list)
            for one, (lines, announced) in zip(sample, answers, strict=True):
                for kind, found in _judged(root, judge, one, lines, announced):
                    by_kind[kind].append(found)
        silent = sum(not lines and not announced for lines, announced in answers)
        yield from _rows(title, by_kind, silent)


def _rows(title: str, by_kind: dict[str, list[Found]], silent: int) -> Iterator[Row]:
    everything = [one for some in by_kind.values() for one in some]
    for kind, found in [*sorted(by_kind.items()), ("all", everything)]:
        proven, answered = sum(one.proven for one in found), sum(one.answered for one in found)
        known = answered + sum(min(one.announced, one.proven - one.answered) for one in found)
        verdicts = sum((one.verdicts for one in found), Counter[Verdict]())
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        note = (
            f"answered {_part(answered, proven):.1f} %; {len(found)} symbols, {proven} proven uses; "
            f"of the answered lines, for basedpyright: {said}; {sum(one.doubted for one in found)} doubted"
        )
        if kind == "all":
            note += f"; {silent} symbols without a word"
        yield Row(f"references of {title}, {kind}: known", "100 %", _part(known, proven), unit="%", note=note)


def _part(of: int, whole: int) -> float:
    return 100 * of / whole if whole else 100.0


def _answer(root: Path, server: Server, one: Defined) -> tuple[set[Place], int]:
    """The lines that are answered, and how many places are announced."""
    symbol = {"name_path": one.name, "relative_path": one.at.path}
    if not one.is_unique:  # another class of the same file may have one
        symbol["name_path"] = _name_path(root, server, one)
    arguments = {**symbol, "project": str(root), "limit": WHOLE, "max_answer_chars": WHOLE_CHARS}
    answer, *notes = server.post("/api/v1/tools/find_referencing_symbols", {"arguments": arguments})["blocks"]
    lines = {
        Place(path, int(line))
        for path, kinds in json.loads(answer.rpartition("\n")[2]).items()
        for entries in kinds.values()
        for entry in entries
        for line in _LINE.findall(entry["content_around_reference"])
    }
    announced = sum(int(match[1]) for form in (_POSSIBLE, _UNEXAMINED) if (match := form.search("\n".join(notes))))
    return lines, announced


def _name_path(root: Path, server: Server, one: Defined) -> str:
    arguments = {"name_path_pattern": one.name, "relative_path": one.at.path, "project": str(root)}
    answer = server.post("/api/v1/tools/find_symbol", {"arguments": arguments})["blocks"][0]
    found = json.loads(answer)
    return next(
        symbol["name_path"]
        for symbol in found
        if symbol["body_location"]["start_line"] <= one.at.line0 <= symbol["body_location"]["end_line"]
    )


def _judged(
    root: Path, judge: Judge, one: Defined, lines: Collection[Place], announced: int
) -> Iterator[tuple[str, Found]]:
    """What the judges say of one symbol, by the kind of its uses."""
    leads = {
        use: judge.leads(use.path, use.line0, use.column) for use in one.uses if not one.is_unique or use.place in lines
    }
    groups: dict[str, set[Use]] = defaultdict(set)
    for use in one.uses:
        groups[_kind(one, use)].add(use)
    strangers = [line for line in lines if one.name not in _line(root, line)]
    for kind, uses in groups.items():
        proven = {use.place for use in uses if one.is_unique or one.at in leads[use]}
        verdicts = Counter[Verdict](
            _verdict(one, leads[use]) for use in {use.place: use for use in uses if use.place in lines}.values()
        )
        doubted = 0 if one.is_unique else verdicts["elsewhere"]
        if strangers:
            verdicts["no such name"] += len(strangers)
            doubted, strangers = doubted + len(strangers), []
        yield kind, Found(len(proven), len(proven & set(lines)), announced, verdicts, doubted)


def _kind(one: Defined, use: Use) -> str:
    if one.kind == "method":
        return "method, of self" if use.on_self else "method, of others"
    return one.kind


def _verdict(one: Defined, leads: Collection[Place]) -> Verdict:
    if one.at in leads:
        return "confirmed"
    return "elsewhere" if leads else "open"


def _line(root: Path, at: Place) -> str:
    return (root / at.path).read_text().split("\n")[at.line0]


def _rich() -> Path:
    """Rich's sources, fetched by pip once."""
    root = BUILD / f"rich-{RICH}"
    if not root.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
        subprocess.run([*pip, "--dest", str(BUILD), f"rich=={RICH}"], check=True)
        with tarfile.open(BUILD / f"rich-{RICH}.tar.gz") as archive:
            archive.extractall(BUILD, filter="data")
        # A checkout of its own: else the ignore rules of this repository would apply to it.
        subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root
