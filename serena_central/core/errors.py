"""The error tree: every failure that a caller can meet, with a sentence on what to do next.

Errors hold data and a message for the reader, who is often a language model. They know no protocol:
only `mcp_server/errors.py` and `web` translate them.

    SerenaCentralError
    ├── ConfigError              a setting has a wrong value: file, line, key and what is allowed
    ├── InvalidArguments         the call's arguments don't fit the tool's schema
    │   └── NothingMatched       a needle that is not in the text
    ├── UnknownTool
    ├── CallCancelled            a person or the server's stop ended the call while it ran
    ├── ToolRefused              the call is understood and not allowed here (mode, setting, shared session)
    ├── UnknownProject           lists the projects that are known
    ├── ProjectRefused           a root that must not become a project (`/`, the home folder, outside allowed_roots)
    ├── PathError
    │   ├── PathOutsideProject
    │   ├── PathNotFound
    │   ├── PathDenied           a permission rule closes it: which one, and who can change that
    │   └── PathRefused          NUL, device, folder where a file is needed, unreadable, too large, binary
    ├── TrustRefused             what was to be trusted is not what was shown, or can't be kept
    ├── MemoryNotFound           lists the names there are
    ├── MemoryChanged            not what the session has seen: what it is now
    ├── SymbolNotFound           names close matches
    ├── AmbiguousSymbol          lists the candidates
    ├── TooManyMatches           lists counts per file
    ├── EditError
    │   ├── EditConflict         a symbol changed since this session read it: by whom, when, and what it is now
    │   ├── EditRefused          what it would break, or can't be known completely
    │   ├── JointEditRefused     one of several projects can't be edited, and so none was
    │   ├── UndoRefused          says why an edit cannot be undone
    │   ├── EditNotInTime        others edited the file until the call's time was over: which place in the queue it had
    │   ├── FileChanged          a file changed between the plan of an edit and its writing
    │   ├── WriteFailed          the disk refused; says that nothing changed, or which files did
    │   └── OutcomeUnknown       a repeated call; it is unknown whether it was made before the server died
    ├── SessionError
    │   ├── TooManySessions      all are in use; which setting allows more
    │   ├── SessionNotFound
    │   └── SessionTerminated    killed by a person: who and when
    ├── LanguageServerError
    │   ├── ServerNotInstalled   with the one command that gets it
    │   │   └── ServerNotTrusted it would execute what a project that is not trusted brings
    │   ├── ServerBeingInstalled it is fetched now, or that failed
    │   │   └── ServerNotDriven  known, and not usable here yet
    │   ├── InstallFailed        why, with the tail of the installer's output
    │   ├── NoServerRoot         a file in nothing that its server could load (no module, no workspace)
    │   ├── ServerStartFailed
    │   ├── ServerCrashed        exit code and the tail of its stderr
    │   ├── ServerUnavailable    the pool refuses for now, and says why
    │   ├── ServerBusy           cancelled or content modified, after the retries
    │   ├── ServerSilent         it left calls unanswered, and sends nothing
    │   ├── RequestFailed        the server answered with an error
    │   │   └── Inapplicable     the question makes no sense for what it is about
    │   └── Unsupported          the server does not offer this
    ├── DeadlineExceeded         the call's deadline passed
    │   └── ReferencesUnknown    of a language server's answer; places of the name that are known without it
    ├── NotReady                 the server was just started, and can't tell yet whether a call is a repetition
    ├── StoreError               the database can't be used; the server goes on without it
    └── AlreadyRunning           another server of this user runs: url and pid
"""

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

from serena_central.core.quoting import escaped, escaped_lines, framed, quoted

CONTENT_SHOWN = 20_000
"""Characters of a text that a refusal shows."""

CANDIDATES_LISTED = 40
"""Lines of one message: more say no more than their number."""


KEY_SHOWN = 60
"""Characters shown of an unknown setting's key: a repository's file may contain anything."""

_PLAIN_KEY = re.compile(r"[\w./\[\]-]{1,200}")

STDERR_SHOWN = 4_000
"""Characters of what a process wrote to its stderr: a repository's own build may have written them."""
NO_MEMORY = (
    "Out of memory in this call; other calls are not affected. "
    "Narrow the request (fewer files, a narrower pattern) or end other programs."
)
"""The message for a MemoryError."""

MESSAGE_CHARS = 8_000
"""Of one message: callers' own words come back in it, and those may be megabytes."""


class SerenaCentralError(Exception):
    """The root of the tree. `str(error)` is one or two sentences for the person or model who called.

    A message is one line, whatever names and paths it repeats, but for classes with `several_lines`: these escape or
    frame each part of theirs that comes from a repository.
    """

    several_lines: ClassVar[bool] = False

    def __str__(self) -> str:
        text = super().__str__()
        text = escaped_lines(text) if self.several_lines else escaped(text)
        if len(text) <= MESSAGE_CHARS:
            return text
        half = MESSAGE_CHARS // 2  # what is wrong stands in front, what to do next at the end
        return f"{text[:half]} … {len(text) - MESSAGE_CHARS} characters omitted … {text[-half:]}"


def listed(names: Iterable[str], none: str = "none") -> str:
    """Names in running text: quoted, the first of them."""
    every = list(names)
    shown = ", ".join(map(quoted, every[:CANDIDATES_LISTED]))
    more = len(every) - CANDIDATES_LISTED
    return f"{shown} and {more} more" if more > 0 else shown or none


class ConfigError(SerenaCentralError):
    """A setting that can't be used. `file` is None for environment variables and flags, `line` is 1-based."""

    def __init__(self, key: str, problem: str, *, file: str | None = None, line: int | None = None) -> None:
        where = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        shown = key if _PLAIN_KEY.fullmatch(key) else quoted(key, KEY_SHOWN)
        super().__init__(f"{where}{shown}: {problem}")
        self.key = key
        self.problem = problem
        self.file = file
        self.line = line


class InvalidArguments(SerenaCentralError):
    """The arguments of a call don't fit the tool's schema."""


class NothingMatched(InvalidArguments):
    """What was to be replaced is not in the text."""


class UnknownTool(SerenaCentralError):
    """No tool has this name."""

    def __init__(self, name: str, close: Sequence[str] = ()) -> None:
        hint = f" Did you mean {', '.join(close)}?" if close else " tools/list names them."
        super().__init__(f"There is no tool named {name!r}.{hint}")
        self.name = name


class TrustRefused(SerenaCentralError):
    """A person's decision about a repository that can't be taken as it was meant; the message says why."""


class CallCancelled(SerenaCentralError):
    """The call was ended while it ran, by a person or because the server stops; the message says by what."""


class ToolRefused(SerenaCentralError):
    """The call is understood, and not allowed in this session or by the settings."""


class UnknownProject(SerenaCentralError):
    """No project fits what the call said. `known` holds names or roots of those that could be meant."""

    def __init__(self, asked: str | None, known: Sequence[str]) -> None:
        names = listed(known, "none yet")
        what = f"There is no project {quoted(asked)}." if asked else "This call does not name a project."
        super().__init__(f"{what} Known projects: {names}. Pass one of these names or an absolute path as project=.")
        self.asked = asked
        self.known = list(known)


class ProjectRefused(SerenaCentralError):
    """A folder that must not become a project."""


class PathError(SerenaCentralError):
    """A path in a call can't be used."""


class PathOutsideProject(PathError):
    """A path that leads out of the project's root, directly or by a symlink."""

    def __init__(self, path: str, root: str) -> None:
        super().__init__(f"{path!r} is outside the project {quoted(root)}. Use a path relative to the project root.")
        self.path = path
        self.root = root


class PathNotFound(PathError):
    """Nothing is at this path."""

    def __init__(self, path: str, close: Sequence[str] = ()) -> None:
        hint = f" Close matches: {listed(close)}." if close else " Use find_file or list_dir to see what exists."
        super().__init__(f"{path!r} does not exist in this project.{hint}")
        self.path = path


class PathRefused(PathError):
    """Something is at this path, but it can't be used for this: the message says why."""


class PathDenied(PathError):
    """A rule of a person's settings closes this path. The message names the rule, and nothing of what lies there."""


class MemoryNotFound(SerenaCentralError):
    """No memory has this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"There is no memory {quoted(name)}. Memories: {listed(known, 'none yet')}.")
        self.name = name


class MemoryChanged(SerenaCentralError):
    """A memory is not what the session has seen of it. `digest` belongs to `content`, what it is now."""

    several_lines = True

    def __init__(self, name: str, content: str, digest: str) -> None:
        super().__init__(
            f"Nothing was changed: memory {quoted(name)} has content that this session has not read. "
            f"{framed(content[:CONTENT_SHOWN], 'Its current content')}\nMerge it with your changes and call again."
        )
        self.name = name
        self.digest = digest


class SymbolNotFound(SerenaCentralError):
    """No symbol fits the pattern in the files that were asked. `unknown` says which files could not be."""

    def __init__(self, pattern: str, where: str, close: Sequence[str] = (), unknown: Sequence[str] = ()) -> None:
        hint = f" Close matches: {', '.join(close)}." if close else " get_symbols_overview lists the symbols of a file."
        super().__init__(" ".join([f"No symbol matches {pattern!r} in {where}.{hint}", *unknown]))
        self.pattern = pattern


class AmbiguousSymbol(SerenaCentralError):
    """Several symbols fit where one is needed. `candidates` are `path: name_path` lines; the message lists some."""

    several_lines = True

    def __init__(self, pattern: str, candidates: Sequence[str]) -> None:
        shown = "\n".join(map(escaped, candidates[:CANDIDATES_LISTED]))
        if len(candidates) > CANDIDATES_LISTED:
            shown += f"\n… and {len(candidates) - CANDIDATES_LISTED} more"
        super().__init__(
            f"{pattern!r} matches {len(candidates)} symbols. Pass relative_path or a longer name path:\n{shown}"
        )
        self.candidates = list(candidates)


class TooManyMatches(SerenaCentralError):
    """More matches than max_matches allows. `per_file` maps root-relative path → count."""

    several_lines = True

    def __init__(self, total: int, limit: int, per_file: dict[str, int]) -> None:
        counts = "\n".join(f"{escaped(path)}: {count}" for path, count in per_file.items())
        super().__init__(
            f"{total} symbols match, more than max_matches={limit}. Narrow the pattern or pass relative_path:\n{counts}"
        )
        self.per_file = per_file


class EditError(SerenaCentralError):
    """An edit was not made."""


class EditConflict(EditError):
    """A symbol is not any more what the session saw. `changed_by` names a session and client, or is `outside`; `at` is
    ISO 8601 (UTC), None if that can't be known; `current` is its source now, None for a whole file."""

    several_lines = True

    def __init__(self, symbol: str, path: str, changed_by: str, at: str | None, current: str | None) -> None:
        when = f" at {at}" if at else ""
        shown = f" Its current text:\n{current}" if current is not None else " read_file shows its current text."
        super().__init__(
            f"{escaped(symbol)} in {escaped(path)} was changed by {escaped(changed_by)}{when}, after this session last "
            f"read it. Nothing was written. Re-read the symbol and retry the edit.{shown}"
        )
        self.symbol = symbol
        self.path = path
        self.changed_by = changed_by
        self.at = at
        self.current = current


class EditRefused(EditError):
    """An edit that would break something, or of which not all consequences can be known; the message says what."""


class JointEditRefused(EditError):
    """An edit of several projects that one of them can't take part in. `error` is that one's."""

    several_lines = True

    def __init__(self, project: str, error: SerenaCentralError, projects: Sequence[str]) -> None:
        others = [name for name in projects if name != project]
        rest = f" {listed(others)} {'was' if len(others) == 1 else 'were'} not changed either." if others else ""
        super().__init__(f"Nothing was changed, because of {quoted(project)}: {error}{rest}")
        self.project = project
        self.error = error


class UndoRefused(EditError):
    """An edit cannot be undone; the message says why."""

    def __init__(self, edit: str, reason: str) -> None:
        super().__init__(f"{edit} can't be undone: {reason}. Nothing was changed.")
        self.edit = edit


class EditNotInTime(EditError):
    """Others edited a file until the time of this edit was over; `ahead` counts those that were still before it."""

    def __init__(self, path: str, ahead: int, waited_s: float) -> None:
        super().__init__(
            f"{path!r} is being edited by other calls; after {waited_s:.1f} s this call was still "
            f"number {ahead + 1} in the file's queue. Nothing was changed. Call again, or make fewer and larger "
            "edits."
        )
        self.path = path
        self.ahead = ahead


class FileChanged(EditError):
    """A file is not any more what an edit was planned on. Nothing was changed."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} changed on disk during the edit. Nothing was written; re-read it and call again.")
        self.path = path


class WriteFailed(EditError):
    """The disk refused. `changed` names files that could not be brought back to what they were."""

    def __init__(self, path: str, reason: str, changed: Sequence[str] = ()) -> None:
        state = f"These files could not be restored: {', '.join(changed)}." if changed else "No file was changed."
        super().__init__(f"{path!r} could not be written: {reason}. {state}")
        self.path = path
        self.changed = list(changed)


class OutcomeUnknown(EditError):
    """A repeated call: the server was killed while its edit was made, and it is unknown whether it was written."""

    def __init__(self, edit: str, files: Sequence[str]) -> None:
        where = ", ".join(files[:CANDIDATES_LISTED]) or "its files"
        super().__init__(
            f"This call was already made as {edit}, before the server restarted. It is unknown whether its edit was "
            f"written: the server was killed, and {where} changed since. It was not repeated; check the current state "
            "and send what is missing as a new call."
        )
        self.edit = edit
        self.files = list(files)


class SessionError(SerenaCentralError):
    """A session can't be used."""


class SessionNotFound(SessionError):
    """No session has this id, or it belongs to another credential."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is no session {session_id!r}. Start a new conversation.")


class TooManySessions(SessionError):
    """No session can begin: there are as many as there may be, and each is in use."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The limit of {limit} sessions is reached, and all of them are in use. Close clients "
            "that are no longer needed, wait until idle sessions expire, or raise sessions.max_sessions."
        )


class SessionTerminated(SessionError):
    """The session was killed by a person. `by` and `at` (ISO 8601, UTC) say by whom and when."""

    def __init__(self, by: str, at: str) -> None:
        super().__init__(f"This session was terminated by {by} at {at}. Start a new conversation to continue.")
        self.by = by
        self.at = at


class LanguageServerError(SerenaCentralError):
    """A language server could not do what was asked. `server` is its name in the catalogue."""

    def __init__(self, server: str, message: str) -> None:
        super().__init__(message)
        self.server = server


class ServerNotInstalled(LanguageServerError):
    """The program is not on this machine. `how_to_get` is one command, or a page."""

    def __init__(self, server: str, language: str, how_to_get: str) -> None:
        super().__init__(
            server, f"The language server {server} for {language} is not installed. To install it: {how_to_get}"
        )
        self.how_to_get = how_to_get


class ServerBeingInstalled(LanguageServerError):
    """The program is being fetched, or that was tried and failed; the message says which."""

    several_lines = True


class ServerNotDriven(ServerNotInstalled):
    """The catalogue knows the server, but it is not supported yet; `lacks` says what is missing."""

    def __init__(self, server: str, language: str, lacks: str) -> None:
        LanguageServerError.__init__(
            self,
            server,
            f"The language server {server} for {language} is recognized but not supported yet; it requires {lacks}.",
        )
        self.how_to_get = f"not supported yet: it requires {lacks}"


class ServerNotTrusted(ServerNotInstalled):
    """The server would execute `what` of a project that its user does not trust: it is not run for it."""

    def __init__(self, server: str, language: str, what: str, project: str) -> None:
        how = f"serena-central trust {project}"
        LanguageServerError.__init__(
            self,
            server,
            f"The language server {server} for {language} was not started: it would execute {what} of this repository, "
            f"which is not trusted. To trust it: {how}",
        )
        self.how_to_get = f"not started, because the repository is not trusted: {how}"


class InstallFailed(LanguageServerError):
    """A language server could not be installed; nothing of the attempt is left."""

    several_lines = True


class NoServerRoot(LanguageServerError):
    """The file lies in nothing that its language server could load; none was started for it. The message says why."""


class ServerStartFailed(LanguageServerError):
    """The program was started and never became usable."""


class ServerCrashed(LanguageServerError):
    """The process ended while it was needed. `exit_code` is negative for a signal, None if unknown."""

    def __init__(self, server: str, exit_code: int | None, stderr_tail: str) -> None:
        tail = f" Last lines of its stderr: {quoted(stderr_tail[-STDERR_SHOWN:], STDERR_SHOWN)}" if stderr_tail else ""
        super().__init__(
            server,
            f"The language server {server} exited unexpectedly (exit code {exit_code}). "
            f"The next call restarts it.{tail}",
        )
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class ServerUnavailable(LanguageServerError):
    """The pool gives no lease for now; the message says why and when to try again."""


class ServerSilent(LanguageServerError):
    """The server has left calls without an answer, and sends nothing."""

    def __init__(self, server: str, seconds: float) -> None:
        super().__init__(
            server,
            f"The language server {server} has sent nothing for {seconds:.0f} s, and left an earlier call without an "
            "answer. Call again later, or restart it (restart_language_server).",
        )


class ServerBusy(LanguageServerError):
    """The server kept answering 'content modified' or 'cancelled'."""


class RequestFailed(LanguageServerError):
    """The server answered with a JSON-RPC error, or with something that can't be read."""

    def __init__(self, server: str, method: str, code: int, message: str) -> None:
        super().__init__(server, f"The language server {server} refused {method}: {quoted(message)} ({code})")
        self.method = method
        self.code = code
        self.message = message


class Inapplicable(RequestFailed):
    """The question makes no sense for the symbol, as the callees of a type."""


class Unsupported(LanguageServerError):
    """The server does not offer this request. `instead` is a sentence that names another way."""

    def __init__(self, server: str, what: str, instead: str = "") -> None:
        super().__init__(
            server, f"The language server {server} does not offer {what}." + (f" {instead}" if instead else "")
        )


class DeadlineExceeded(SerenaCentralError):
    """A bounded wait ran out. `seconds` is the bound; `because`, a clause, is what was waited for."""

    def __init__(self, what: str, seconds: float, because: str = "") -> None:
        advice = (
            f": {because}. Call again later; restart_language_server restarts a language server that hangs."
            if because
            else ". Narrow the request, or call again."
        )
        super().__init__(f"{what} did not answer within {seconds:g} s{advice}")
        self.seconds = seconds


class ReferencesUnknown(DeadlineExceeded):
    """A language server did not say in time what refers to a symbol; `places` of its name are known without it."""

    def __init__(self, symbol: str, seconds: float, because: str, places: Sequence[str], more: int = 0) -> None:
        further = f" and {more} more" if more else ""
        known = "That does not mean that it is unused."
        if places:
            known += f" Its name occurs in code at {', '.join(places)}{further}; each place may refer to it."
        SerenaCentralError.__init__(
            self,
            f"The references to {symbol} are not known: {because}. {known} Call again later; "
            "restart_language_server restarts a language server that hangs.",
        )
        self.seconds = seconds


class NotReady(SerenaCentralError):
    """The server was just started and can't tell yet whether a call repeats an earlier one."""

    def __init__(self) -> None:
        super().__init__(
            "The server just started and cannot tell yet whether this call was already made. Nothing was changed. "
            "Retry in a few seconds."
        )


class StoreError(SerenaCentralError):
    """The database can't be used."""


class AlreadyRunning(SerenaCentralError):
    """Another server of this user runs already."""

    def __init__(self, url: str, pid: int) -> None:
        super().__init__(
            f"A serena-central server is already running: {url} (pid {pid}). `serena-central stop` stops it."
        )
        self.url = url
        self.pid = pid
