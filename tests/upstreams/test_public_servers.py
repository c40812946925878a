"""Public MCP servers answer by way of the hub as they answer directly: every tool, resource, template, prompt and
completion, progress, and what they ask their client."""

import base64
import json
import os
import re
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from tests.support.central import running_central
from tests.support.mcp import Era, sdk_client
from tests.support.upstreams import QUICK, settings_of_user
from tests.upstreams.conftest import PublicServers

pytestmark = [
    pytest.mark.upstreams,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])

ALL = QUICK | {"hub.listing": "all", "hub.enabled": "all", "hub.learn_wait_s": 60, "hub.start_timeout_s": 60}

MOMENT = re.compile(
    r"\d{1,2}:\d\d:\d\d [AP]M|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)?|\w{3} \w{3} \d\d \d{4} [\d:]+ GMT[^\"\\]*"
)
"""Times of now, as the servers write them."""


@dataclass
class Person:
    """Answers what a server asks, and notes what it was asked and told."""

    asked: list[Any] = field(default_factory=list)
    progress: list[tuple[float | None, str | None]] = field(default_factory=list)

    async def sample(self, _context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.asked.append(["sampling", _plain(params)])
        return types.CreateMessageResult(role="assistant", content=types.TextContent(text="sampled"), model="m")

    async def elicit(self, _context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(["elicitation", _plain(params) | {"elicitationId": None}])  # the modern era has none
        return types.ElicitResult(action="accept", content={"name": "Ann", "check": True})

    async def heard(self, value: float, total: float | None, message: str | None) -> None:
        self.progress.append((value / total if total else None, message))

    @property
    def callbacks(self) -> dict[str, Any]:
        return {"sampling_callback": self.sample, "elicitation_callback": self.elicit}


def _plain(model: Any) -> Any:
    data = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    data.pop("_meta", None)
    return _decoded(data)


def _decoded(value: Any) -> Any:
    """The same with blobs that are text as that text: it may hold the time of now."""
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: _decoded(one) for key, one in value.items()}
    if isinstance(blob := value.get("blob"), str):
        with suppress(UnicodeDecodeError):
            found["blob"] = base64.b64decode(blob).decode()
    return found


class Side:
    """One of the two ways to a server: directly, or by the hub."""

    def __init__(self, client: Client, person: Person, prefix: str, folder: Path) -> None:
        self.client = client
        self.person = person
        self.prefix = prefix
        self.folder = folder

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        given = json.loads(json.dumps(arguments).replace("FOLDER", str(self.folder)))
        return await self._answer(
            lambda: self.client.call_tool(self.prefix + tool, given, progress_callback=self.person.heard)
        )

    async def read(self, uri: str) -> Any:
        return await self._answer(lambda: self.client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self._answer(lambda: self.client.get_prompt(self.prefix + name, arguments))

    async def complete(self, ref: Any, argument: dict[str, str], context: dict[str, str] | None = None) -> Any:
        if isinstance(ref, types.PromptReference):
            ref = types.PromptReference(name=self.prefix + ref.name)
        return await self._answer(lambda: self.client.complete(ref, argument, context))

    async def listed(self, kind: str) -> list[Any]:
        """One of the server's lists; names without the prefix, and what other servers have left out."""
        try:
            page = await getattr(self.client, f"list_{kind}")()
        except MCPError:
            return []
        found = [self._comparable(_plain(one)) for one in getattr(page, kind)]
        if kind in ("tools", "prompts"):
            found = [one for one in found if one["name"].startswith(self.prefix)]
            for one in found:
                one["name"] = one["name"].removeprefix(self.prefix)
                one.pop("execution", None)  # of tasks, which the modern era does not know
                one.pop("outputSchema", None)  # the hub lists none: a long answer's structured content is left out
        else:
            found = [one for one in found if not one.get("uri", one.get("uriTemplate", "")).startswith("serena:")]
        return sorted(found, key=lambda one: one["name"])

    async def _answer(self, ask: Callable[[], Any]) -> Any:
        try:
            return self._comparable(_plain(await ask()))
        except MCPError as error:
            return {"error": self._comparable(error.error.message)}

    def _comparable(self, value: Any) -> Any:
        text = json.dumps(value).replace(str(self.folder), "FOLDER")
        return json.loads(MOMENT.sub("MOMENT", text))


@asynccontextmanager
async def both(
    tmp_path: Path,
    home: Path,
    command: Callable[[Path], list[str]],
    era: Era,
    env: dict[str, str] | None = None,
    prepare: Callable[[Path], None] | None = None,
) -> AsyncGenerator[tuple[Side, Side]]:
    """The two ways to a server, each with a folder and a process of its own."""
    folders = [tmp_path / "direct" / "work", tmp_path / "behind" / "work"]
    for folder in folders:
        folder.mkdir(parents=True)
        if prepare is not None:
            prepare(folder)
    direct_command, hub_command = (command(folder) for folder in folders)
    env = env or {}
    settings_of_user(home / ".claude", {"one": {"command": hub_command[0], "args": hub_command[1:], "env": env}})
    parameters = StdioServerParameters(command=direct_command[0], args=direct_command[1:], env={**os.environ, **env})
    first, second = Person(), Person()
    async with (
        Client(stdio_client(parameters), mode="legacy", **first.callbacks) as direct,
        running_central(tmp_path, ALL) as running,
        sdk_client(running.url, era, running.authorized, **second.callbacks) as hub,
    ):
        yield Side(direct, first, "", folders[0]), Side(hub, second, "one__", folders[1])


async def compare(direct: Side, hub: Side, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """All lists, and these calls, one after another; every tool has to be among them. Returns the last answers."""
    for kind in ("tools", "resources", "resource_templates", "prompts"):
        assert await hub.listed(kind) == await direct.listed(kind), kind
    assert {tool for tool, _ in calls} == {one["name"] for one in await direct.listed("tools")}
    answers: dict[str, Any] = {}
    for tool, arguments in calls:
        answers[tool] = await direct.call(tool, arguments)
        assert await hub.call(tool, arguments) == answers[tool], tool
    for resource in await direct.listed("resources"):
        assert await hub.read(resource["uri"]) == await direct.read(resource["uri"])
    return answers


@ERAS
async def test_server_everything(tmp_path: Path, home: Path, public_servers: PublicServers, era: Era) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("echo", {"message": "hello"}),
        *(
            ("get-annotated-message", {"messageType": kind, "includeImage": with_image})
            for kind in ("error", "success", "debug")
            for with_image in (False, True)
        ),
        ("get-resource-links", {"count": 5}),
        ("get-resource-reference", {"resourceType": "Blob", "resourceId": 3}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-sum", {"a": 1.5, "b": 2}),
        ("get-tiny-image", {}),
        ("gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
        ("trigger-long-running-operation", {"duration": 0.4, "steps": 4}),
        ("trigger-sampling-request", {"prompt": "why?", "maxTokens": 7}),
        ("trigger-elicitation-request", {}),
        ("trigger-url-elicitation", {"url": "https://example.com/", "elicitationId": "e1"}),
        ("simulate-research-query", {"topic": "tea"}),
        ("get-roots-list", {}),
        ("get-env", {}),
        ("toggle-simulated-logging", {}),
        ("toggle-subscriber-updates", {}),
    ]
    differing = {"get-env", "get-roots-list", "toggle-simulated-logging", "toggle-subscriber-updates"}
    """The environment and the roots are others; the toggles name the connection."""
    command = public_servers.npm("server-everything", "stdio")
    async with both(tmp_path, home, lambda _folder: command, era) as (direct, hub):
        there = {one["name"] for one in await hub.listed("tools")}
        assert {name for name, _ in calls} == there
        direct_tools = {one["name"]: one for one in await direct.listed("tools")}
        hub_tools = {one["name"]: one for one in await hub.listed("tools")}
        assert {name: hub_tools[name] for name in direct_tools} == direct_tools
        for kind in ("resources", "resource_templates", "prompts"):
            assert await hub.listed(kind) == await direct.listed(kind), kind
        for tool, arguments in calls:
            answer, expected = await hub.call(tool, arguments), await direct.call(tool, arguments)
            if tool in differing:
                assert answer.keys() == expected.keys(), tool
            elif tool in direct_tools:
                assert answer == expected, tool
        assert hub.person.asked == direct.person.asked
        assert len(direct.person.asked) >= 2
        assert hub.person.progress  # five a second at most
        assert set(hub.person.progress) <= set(direct.person.progress)
        for uri in (
            *(one["uri"] for one in await direct.listed("resources")),
            "demo://resource/dynamic/text/7",
            "demo://resource/dynamic/blob/8",
            "demo://resource/dynamic/text/none",
        ):
            assert await hub.read(uri) == await direct.read(uri), uri
        for name, given in (
            ("simple-prompt", {}),
            ("args-prompt", {"city": "Oslo"}),
            ("args-prompt", {"city": "Oslo", "state": "x"}),
            ("args-prompt", {}),
            ("completable-prompt", {"department": "Sales", "name": "Ann"}),
            ("resource-prompt", {"resourceType": "Text", "resourceId": "2"}),
        ):
            assert await hub.prompt(name, dict(given)) == await direct.prompt(name, dict(given)), name
        team = types.PromptReference(name="completable-prompt")
        numbered = types.ResourceTemplateReference(uri="demo://resource/dynamic/text/{resourceId}")
        for ref, argument, context in (
            (team, {"name": "department", "value": ""}, None),
            (team, {"name": "department", "value": "S"}, None),
            (team, {"name": "name", "value": ""}, {"department": "Sales"}),
            (numbered, {"name": "resourceId", "value": "1"}, None),
        ):
            completed = await hub.complete(ref, argument, context)
            assert completed == await direct.complete(ref, argument, context)
            assert completed["completion"]["values"] is not None


@ERAS
async def test_server_filesystem(tmp_path: Path, home: Path, public_servers: PublicServers, era: Era) -> None:
    def prepare(folder: Path) -> None:
        (folder / "notes.md").write_text("".join(f"line {number}\n" for number in range(20)))
        (folder / "dot.png").write_bytes(bytes.fromhex("89504e470d0a1a0a"))
        (folder / "sub").mkdir()
        (folder / "sub" / "deep.txt").write_text("deep\n")

    edit = {"path": "FOLDER/notes.md", "edits": [{"oldText": "line 3\n", "newText": "third\n"}]}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"path": "FOLDER/notes.md"}),
        ("read_text_file", {"path": "FOLDER/notes.md", "head": 3}),
        ("read_text_file", {"path": "FOLDER/missing.md"}),
        ("read_text_file", {"path": "/etc/passwd"}),
        ("read_media_file", {"path": "FOLDER/dot.png"}),
        ("read_multiple_files", {"paths": ["FOLDER/notes.md", "FOLDER/sub/deep.txt"]}),
        ("write_file", {"path": "FOLDER/new.txt", "content": "new\n"}),
        ("edit_file", edit | {"dryRun": True}),
        ("edit_file", edit),
        ("create_directory", {"path": "FOLDER/made"}),
        ("list_directory", {"path": "FOLDER"}),
        ("list_directory_with_sizes", {"path": "FOLDER", "sortBy": "size"}),
        ("directory_tree", {"path": "FOLDER"}),
        ("move_file", {"source": "FOLDER/new.txt", "destination": "FOLDER/made/new.txt"}),
        ("search_files", {"path": "FOLDER", "pattern": "**/*.txt"}),
        ("get_file_info", {"path": "FOLDER/notes.md"}),
        ("list_allowed_directories", {}),
    ]
    async with both(
        tmp_path,
        home,
        lambda folder: public_servers.npm("server-filesystem", str(folder)),
        era,
        prepare=prepare,
    ) as (direct, hub):
        answers = await compare(direct, hub, calls)
        assert "FOLDER/made/new.txt" in answers["search_files"]["content"][0]["text"]
        assert (hub.folder / "notes.md").read_bytes() == (direct.folder / "notes.md").read_bytes()


@ERAS
async def test_server_memory(tmp_path: Path, home: Path, public_servers: PublicServers, era: Era) -> None:
    entity = {"name": "tea", "entityType": "drink", "observations": ["hot"]}
    relation = {"from": "tea", "to": "cup", "relationType": "in"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("create_entities", {"entities": [entity, entity | {"name": "cup", "entityType": "thing"}]}),
        ("create_relations", {"relations": [relation]}),
        ("add_observations", {"observations": [{"entityName": "tea", "contents": ["green"]}]}),
        ("add_observations", {"observations": [{"entityName": "nobody", "contents": ["x"]}]}),
        ("read_graph", {}),
        ("search_nodes", {"query": "green"}),
        ("open_nodes", {"names": ["tea"]}),
        ("delete_observations", {"deletions": [{"entityName": "tea", "observations": ["hot"]}]}),
        ("delete_relations", {"relations": [relation]}),
        ("delete_entities", {"entityNames": ["cup"]}),
        ("read_graph", {}),
    ]
    for name in ("direct", "behind"):
        (tmp_path / name).mkdir()

    def command(folder: Path) -> list[str]:
        return ["/usr/bin/env", f"MEMORY_FILE_PATH={folder / 'graph.jsonl'}", *public_servers.npm("server-memory")]

    async with both(tmp_path, home, command, era) as (direct, hub):
        answers = await compare(direct, hub, calls)
        assert answers["read_graph"]["structuredContent"]["entities"][0]["observations"] == ["green"]


@ERAS
async def test_server_git(tmp_path: Path, home: Path, public_servers: PublicServers, era: Era) -> None:
    names = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = names | {f"GIT_{who}_DATE": "1767225600 +0000" for who in ("AUTHOR", "COMMITTER")}

    def prepare(folder: Path) -> None:
        (folder / "a.txt").write_text("one\n")
        for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
            subprocess.run(["git", *arguments], cwd=folder, check=True, env={**os.environ, **env})
        (folder / "a.txt").write_text("two\n")

    repository = {"repo_path": "FOLDER"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("git_status", repository),
        ("git_diff_unstaged", repository),
        ("git_add", repository | {"files": ["a.txt"]}),
        ("git_diff_staged", repository | {"context_lines": 1}),
        ("git_reset", repository),
        ("git_add", repository | {"files": ["a.txt"]}),
        ("git_commit", repository | {"message": "second"}),
        ("git_log", repository),
        ("git_create_branch", repository | {"branch_name": "other"}),
        ("git_checkout", repository | {"branch_name": "other"}),
        ("git_checkout", repository | {"branch_name": "none"}),
        ("git_branch", repository | {"branch_type": "local"}),
        ("git_diff", repository | {"target": "main"}),
        ("git_show", repository | {"revision": "HEAD"}),
    ]
    async with both(
        tmp_path, home, lambda _folder: public_servers.pypi("mcp-server-git"), era, env=env, prepare=prepare
    ) as (direct, hub):
        answers = await compare(direct, hub, calls)
        assert "second" in answers["git_show"]["content"][0]["text"]


@ERAS
async def test_server_time(tmp_path: Path, home: Path, public_servers: PublicServers, era: Era) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_current_time", {"timezone": "Europe/Oslo"}),
        ("get_current_time", {"timezone": "Nowhere/None"}),
        ("convert_time", {"source_timezone": "Etc/UTC", "target_timezone": "Asia/Tokyo", "time": "12:00"}),
    ]
    async with both(tmp_path, home, lambda _folder: public_servers.pypi("mcp-server-time"), era) as (direct, hub):
        await compare(direct, hub, calls)
