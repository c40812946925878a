"""The error tree: every failure that a caller can meet, with a sentence on what to do next.

Errors hold data and a message for the reader, who is often a language model. They know no protocol:
only `mcp_server/errors.py` and `web` translate them. The modules of this package are branches of the tree; import from
the package.

    SerenaCentralError
    ├── ConfigError              a setting has a wrong value: file, line, key and what is allowed
    ├── InvalidArguments         the call's arguments don't fit the tool's schema
    │   └── NothingMatched       a needle that is not in the text
    ├── UnknownTool
    ├── CallCancelled            a person or the server's stop ended the call while it ran
    ├── ToolRefused              the call is understood and not allowed here (mode, setting, shared session)
    │   └── HookBlocked          a hook stopped it before it did anything: why
    ├── ClientCannotAnswer       a call needs what its client does not offer, or refuses
    ├── ClientInputRequired      a call ends with questions to its client, and is sent again with the answers
    ├── UnknownProject           lists the projects that are known
    ├── ProjectRefused           a root that must not become a project (`/`, the home folder)
    │   └── OutsideAllowedRoots  names the folders that the setting allows
    ├── PathError
    │   ├── PathOutsideProject
    │   ├── PathNotFound
    │   ├── PathDenied           a permission rule closes it: which one, and who can change that
    │   └── PathRefused          NUL, device, folder where a file is needed, unreadable, too large, binary
    │       ├── NotInEncoding    text in another encoding than its byte-order mark or the setting says
    │       └── PathIgnored      a folder of which no symbols are known
    ├── TrustRefused             what was to be trusted is not what was shown, or can't be kept
    ├── UpstreamError            an MCP server of the hub; names it
    │   ├── UpstreamUnavailable  it can't be started or reached, or ended; why
    │   └── UpstreamCallFailed   it answered with a protocol error
    ├── TaskError
    │   ├── TaskRefused          its depth, its budget, or a name in it that is not known
    │   ├── NoRunner             nothing on this machine can carry it out; how to get what can
    │   ├── TaskNotFound
    │   ├── PlanRefused          what it brings is not allowed, or its state does not permit it
    │   │   └── PlanNotKept      its state can't be written
    │   ├── InvalidPlan          its errors, each with file and line
    │   └── PlanNotFound
    ├── HubUnavailable           the part that runs MCP servers has not started in time
    ├── UpstreamQuestionRefused  what an MCP server asks back can't be put to the client
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
    │   │   └── EditNotFound
    │   ├── EditNotInTime        others edited the file until the call's time was over: which place in the queue it had
    │   ├── FileChanged          a file changed between the plan of an edit and its writing
    │   ├── WriteFailed          the disk refused; says that nothing changed, or which files did
    │   ├── EditTakenOver        another host of the project brings the edit to its end; it is unknown to which
    │   └── OutcomeUnknown       a repeated call; it is unknown whether it was made before the server died
    ├── UserNotFound             of a team: no such name, or revoked
    ├── SessionError
    │   ├── TooManySessions      all are in use; which setting allows more
    │   ├── SessionHalted        by a hook, until a person resumes it
    │   ├── SessionNotFound
    │   └── SessionTerminated    killed by a person: who and when
    ├── LanguageServerError
    │   ├── ServerNotInstalled   with the one command that gets it
    │   │   ├── ServerNotTrusted it would execute what a project that is not trusted brings
    │   │   └── ServerNotDriven  known, and not usable here yet
    │   ├── ServerBeingInstalled it is fetched now, or that failed
    │   ├── InstallFailed        why, with the tail of the installer's output
    │   ├── NoServerRoot         a file in nothing that its server could load (no module, no workspace)
    │   ├── ServerStartFailed
    │   ├── ServerCrashed        exit code and the tail of its stderr
    │   ├── ServerUnavailable    the pool refuses for now, and says why
    │   ├── ServerBusy           cancelled or content modified, after the retries
    │   ├── ServerSilent         it left calls unanswered, and sends nothing
    │   ├── RequestFailed        the server answered with an error
    │   │   └── Inapplicable     the question makes no sense for what it is about
    │   ├── Unsupported          the server does not offer this
    │   └── SymbolUnknown        it answers as if a symbol that is there were not
    ├── DeadlineExceeded         the call's deadline passed
    │   └── ReferencesNotInTime  of a language server's answer; places of the name that are known without it
    ├── ClusterError             of project hosts on other machines
    │   ├── DirectoryUnavailable it is being started again, or does not answer
    │   ├── HostUnavailable      no node can hold a project's host; why
    │   ├── HostLost             it ended while it carried out a call that may have changed something
    │   ├── HostFenced           another host holds the project by now; nothing was written
    │   ├── NodeNameTaken        another node has this name
    │   └── SeveralHosts         an edit of several projects that are on different hosts
    ├── NotReady                 the server was just started, and can't tell yet whether a call is a repetition
    ├── StoreError               the database can't be used; the server goes on without it
    │   └── StoreUnusable        before a person changes something: no server is started
    │       └── SchemaTooNew     a newer version has upgraded it
    └── AlreadyRunning           another server of this user runs: url and pid
"""

from serena_central.core.errors.base import CANDIDATES_LISTED, MESSAGE_CHARS, SerenaCentralError, listed
from serena_central.core.errors.call_errors import (
    NO_MEMORY,
    CallCancelled,
    ClientCannotAnswer,
    ClientInputRequired,
    DeadlineExceeded,
    HookBlocked,
    InvalidArguments,
    NothingMatched,
    SessionError,
    SessionHalted,
    SessionNotFound,
    SessionTerminated,
    ToolRefused,
    TooManySessions,
    UnknownTool,
    UserNotFound,
)
from serena_central.core.errors.cluster_errors import (
    ClusterError,
    DirectoryUnavailable,
    HostFenced,
    HostLost,
    HostUnavailable,
    NodeNameTaken,
    SeveralHosts,
)
from serena_central.core.errors.edit_errors import (
    EditConflict,
    EditError,
    EditNotFound,
    EditNotInTime,
    EditRefused,
    EditTakenOver,
    FileChanged,
    JointEditRefused,
    OutcomeUnknown,
    UndoRefused,
    WriteFailed,
)
from serena_central.core.errors.language_server_errors import (
    STDERR_SHOWN,
    Inapplicable,
    InstallFailed,
    LanguageServerError,
    NoServerRoot,
    ReferencesNotInTime,
    RequestFailed,
    ServerBeingInstalled,
    ServerBusy,
    ServerCrashed,
    ServerNotDriven,
    ServerNotInstalled,
    ServerNotTrusted,
    ServerSilent,
    ServerStartFailed,
    ServerUnavailable,
    SymbolUnknown,
    Unsupported,
    references_unknown,
)
from serena_central.core.errors.project_errors import (
    CONTENT_SHOWN,
    AmbiguousSymbol,
    MemoryChanged,
    MemoryNotFound,
    NotInEncoding,
    OutsideAllowedRoots,
    PathDenied,
    PathError,
    PathIgnored,
    PathNotFound,
    PathOutsideProject,
    PathRefused,
    ProjectRefused,
    SymbolNotFound,
    TooManyMatches,
    TrustRefused,
    UnknownProject,
)
from serena_central.core.errors.server_errors import (
    KEY_SHOWN,
    AlreadyRunning,
    ConfigError,
    NotReady,
    SchemaTooNew,
    StoreError,
    StoreUnusable,
)
from serena_central.core.errors.task_errors import (
    InvalidPlan,
    NoRunner,
    PlanNotFound,
    PlanNotKept,
    PlanRefused,
    TaskError,
    TaskNotFound,
    TaskRefused,
)
from serena_central.core.errors.upstream_errors import (
    HubUnavailable,
    UpstreamCallFailed,
    UpstreamError,
    UpstreamQuestionRefused,
    UpstreamUnavailable,
    restart_command,
)

__all__ = [
    "CANDIDATES_LISTED",
    "CONTENT_SHOWN",
    "KEY_SHOWN",
    "MESSAGE_CHARS",
    "NO_MEMORY",
    "STDERR_SHOWN",
    "AlreadyRunning",
    "AmbiguousSymbol",
    "CallCancelled",
    "ClientCannotAnswer",
    "ClientInputRequired",
    "ClusterError",
    "ConfigError",
    "DeadlineExceeded",
    "DirectoryUnavailable",
    "EditConflict",
    "EditError",
    "EditNotFound",
    "EditNotInTime",
    "EditRefused",
    "EditTakenOver",
    "FileChanged",
    "HookBlocked",
    "HostFenced",
    "HostLost",
    "HostUnavailable",
    "HubUnavailable",
    "Inapplicable",
    "InstallFailed",
    "InvalidArguments",
    "InvalidPlan",
    "JointEditRefused",
    "LanguageServerError",
    "MemoryChanged",
    "MemoryNotFound",
    "NoRunner",
    "NoServerRoot",
    "NodeNameTaken",
    "NotInEncoding",
    "NotReady",
    "NothingMatched",
    "OutcomeUnknown",
    "OutsideAllowedRoots",
    "PathDenied",
    "PathError",
    "PathIgnored",
    "PathNotFound",
    "PathOutsideProject",
    "PathRefused",
    "PlanNotFound",
    "PlanNotKept",
    "PlanRefused",
    "ProjectRefused",
    "ReferencesNotInTime",
    "RequestFailed",
    "SchemaTooNew",
    "SerenaCentralError",
    "ServerBeingInstalled",
    "ServerBusy",
    "ServerCrashed",
    "ServerNotDriven",
    "ServerNotInstalled",
    "ServerNotTrusted",
    "ServerSilent",
    "ServerStartFailed",
    "ServerUnavailable",
    "SessionError",
    "SessionHalted",
    "SessionNotFound",
    "SessionTerminated",
    "SeveralHosts",
    "StoreError",
    "StoreUnusable",
    "SymbolNotFound",
    "SymbolUnknown",
    "TaskError",
    "TaskNotFound",
    "TaskRefused",
    "TooManyMatches",
    "TooManySessions",
    "ToolRefused",
    "TrustRefused",
    "UndoRefused",
    "UnknownProject",
    "UnknownTool",
    "Unsupported",
    "UpstreamCallFailed",
    "UpstreamError",
    "UpstreamQuestionRefused",
    "UpstreamUnavailable",
    "UserNotFound",
    "WriteFailed",
    "listed",
    "references_unknown",
    "restart_command",
]
