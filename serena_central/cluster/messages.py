"""A tool run and its reply as bytes (MessagePack), for a project host in another process.

Times travel as seconds that have passed, since no two machines share a clock. Errors travel as data: the class, the
message and the attributes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from serena_central.cluster.error_data import ErrorData, error_data, error_of
from serena_central.cluster.remote_session import CarriedUsers, RemoteSession, SessionChanges, SessionState, state_of
from serena_central.core import tracing
from serena_central.core.decoding import converted, msgpack_decoder
from serena_central.core.errors import ClusterError, SerenaCentralError
from serena_central.core.tracing import Phases
from serena_central.gates.halting import Halt
from serena_central.sessions.users import User
from serena_central.store.rows import EditRow
from serena_central.tools.answer import Answer, Content
from serena_central.tools.catalogue import Catalogue, Tool
from serena_central.tools.tool_run import PlacedProject, ToolReply, ToolRun

VERSION = 5
"""Of both messages: hosts and fronts of different versions don't understand each other, and say so."""


class RunMessage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A tool run. `elapsed_s`: how long ago the call came."""

    version: int
    id: str
    tool: str
    arguments: dict[str, Any]
    session: SessionState
    elapsed_s: float
    person: bool = False
    from_hook: str = ""
    repeat: str | None = None
    by_root: bool = False
    trace: dict[str, str] = {}
    """The W3C headers of the span that it belongs to."""


class AnswerData(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An answer. `data_chars`: how many characters at the end of the first block are its JSON."""

    blocks: list[str]
    shortened: bool = False
    data_chars: int | None = None
    content: tuple[list[Mapping[str, Any]], Mapping[str, Any] | None] | None = None
    passed: dict[str, Any] | None = None
    failed: bool = False


class Resources(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a run needed: seconds by phase, in any phase, and the language servers that it asked."""

    spent_s: dict[str, float] = {}
    together_s: float = 0.0
    servers: list[str] = []


class ReplyMessage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A reply. Exactly one of `answer`, `error` and `failure` is there; `failure` is one that is not of the tree."""

    version: int
    answer: AnswerData | None = None
    error: ErrorData | None = None
    failure: str | None = None
    notes: list[str] = []
    projects: list[tuple[str, str]] = []
    """Names and roots."""
    unopened: list[tuple[str, str]] = []
    edits: list[EditRow] = []
    earlier_edits: list[EditRow] = []
    """Of runs before, whose replies nobody has taken."""
    changes: SessionChanges = msgspec.field(default_factory=SessionChanges)
    resources: Resources = msgspec.field(default_factory=Resources)


class HostFailed(Exception):
    """A host failed at a call, by an error that is not of the tree; its log says more."""


_runs = msgpack_decoder(RunMessage)
_replies = msgpack_decoder(ReplyMessage)
_encoder = msgspec.msgpack.Encoder()


def encode_run(tool: Tool, run: ToolRun, now: float, user: User | None = None) -> bytes:
    """`now` is the sender's event loop's time; `user` a team's, who may not see everything."""
    return _encoder.encode(
        RunMessage(
            version=VERSION,
            id=run.id,
            tool=tool.name,
            arguments=msgspec.to_builtins(run.arguments),
            session=state_of(run.session, edits=tool.journaled or tool.edits, notes=tool.about == "notes", user=user),
            elapsed_s=now - run.began,
            person=run.person,
            from_hook=run.from_hook,
            repeat=run.repeat,
            by_root=run.by_root,
            trace=tracing.carried(),
        )
    )


def decode_run(
    message: bytes, catalogue: Catalogue, users: CarriedUsers, *, now: float, at: float
) -> tuple[Tool, ToolRun, Mapping[str, str]]:
    """The tool, its run, and the trace that it belongs to; `users` get to know whose run it is. `now` is this event
    loop's time, `at` Unix time.

    Raises:
        ClusterError: the sender is of another version.
    """
    try:
        said = _runs.decode(message)
    except msgspec.DecodeError as error:
        raise _unreadable(error) from error
    _check_version(said.version)
    tool = catalogue.get(said.tool)
    if tool is None:
        raise ClusterError(f"This host has no tool {said.tool}. Run the same version of serena-central everywhere.")
    users.carry(said.session.identity.credential, said.session.allowed_roots)
    run = ToolRun(
        id=said.id,
        tool=tool.name,
        arguments=msgspec.structs.asdict(converted(said.arguments, tool.params)),
        session=RemoteSession(said.session, now=at),
        began=now - said.elapsed_s,
        person=said.person,
        from_hook=said.from_hook,
        repeat=said.repeat,
        by_root=said.by_root,
    )
    return tool, run, said.trace


def encode_reply(
    session: RemoteSession,
    reply: ToolReply,
    error: Exception | None,
    *,
    edits: list[EditRow],
    earlier_edits: list[EditRow],
    phases: Phases,
    halt: Halt | None = None,
) -> bytes:
    """`edits` are those of `reply`, `earlier_edits` of replies that nobody has taken; `error` is what the run raised,
    if it did; `halt`: a hook halted the session."""
    known = isinstance(error, SerenaCentralError)
    return _encoder.encode(
        ReplyMessage(
            version=VERSION,
            answer=_answer_data(reply.answer) if reply.answer is not None and error is None else None,
            error=error_data(error) if known else None,
            failure=None if error is None or known else f"{type(error).__name__}: {error}",
            notes=reply.notes,
            projects=[(project.name, str(project.root)) for project in reply.projects],
            unopened=[(project.name, str(project.root)) for project in reply.unopened],
            edits=edits,
            earlier_edits=earlier_edits,
            changes=session.changes(halt),
            resources=Resources(spent_s=phases.spent_s, together_s=phases.together_s, servers=sorted(phases.servers)),
        )
    )


def decode_reply(message: bytes) -> ReplyMessage:
    """Reads what `encode_reply` has written.

    Raises:
        ClusterError: the host is of another version.
    """
    try:
        said = _replies.decode(message)
    except msgspec.DecodeError as error:
        raise _unreadable(error) from error
    _check_version(said.version)
    return said


def fill(reply: ToolReply, said: ReplyMessage) -> None:
    """Fills the reply of a run with what its host replied."""
    reply.notes += [note for note in said.notes if note not in reply.notes]
    reply.projects = [PlacedProject(name, Path(root)) for name, root in said.projects]
    reply.unopened = [PlacedProject(name, Path(root)) for name, root in said.unopened]
    reply.edits = [row.id for row in said.edits]
    reply.answer = _answer_of(said.answer) if said.answer is not None else None


def failure_of(said: ReplyMessage) -> Exception | None:
    """What the run has raised."""
    if said.error is not None:
        return error_of(said.error)
    return HostFailed(said.failure) if said.failure is not None else None


def _answer_data(answer: Answer) -> AnswerData:
    content = answer.content
    return AnswerData(
        blocks=answer.blocks,
        shortened=answer.shortened,
        data_chars=None if answer.data is None else len(answer.data),
        content=None if content is None else (list(content.blocks), content.structured),
        passed=answer.passed,
        failed=answer.failed,
    )


def _answer_of(data: AnswerData) -> Answer:
    first, chars = data.blocks[0] if data.blocks else "", data.data_chars
    return Answer(
        data.blocks,
        data.shortened,
        None if chars is None else first[len(first) - chars :],
        None if data.content is None else Content(*data.content),
        data.passed,
        data.failed,
    )


def _check_version(version: int) -> None:
    if version != VERSION:
        raise ClusterError(f"A message of the cluster has version {version}, not {VERSION}. {_SAME}")


def _unreadable(error: msgspec.DecodeError) -> ClusterError:
    return ClusterError(f"A message of the cluster can't be read: {error}. {_SAME}")


_SAME = "Run the same version of serena-central on all machines."
