"""The routes of the web application. Token, Host and Origin have been checked before."""

from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute

from serena_central.agents.plans.run_state import PlanView
from serena_central.agents.tasks import TaskState, TaskView
from serena_central.core.events import Severity
from serena_central.pool.state import RunState
from serena_central.projects.coverage import Coverage
from serena_central.sessions.session import SessionState
from serena_central.tools.gating import GateAnswer
from serena_central.web import api_answers as answers
from serena_central.web import schemas
from serena_central.web.accounts import AccountRoutes, AddUser, UserList, UserToken, UserView
from serena_central.web.api import Api, CallTool, OpenSession
from serena_central.web.calls import MOST_CALLS, Calls
from serena_central.web.cluster import ClusterRoutes
from serena_central.web.cluster_view import ClusterStatus, NodeChecks, NodeRecords
from serena_central.web.gates import ClientEvent, Gates
from serena_central.web.hooks import CloseConversation, Hooks
from serena_central.web.metrics import Metrics
from serena_central.web.operation import Operation
from serena_central.web.pages.dashboard import AskLink, Dashboard
from serena_central.web.plans import Decision, MoreWaves, PlanCheck, PlanList, Plans, PlanText, PlanUndone, Resume
from serena_central.web.presence import Presence
from serena_central.web.query import CURSOR, LIMIT, SECONDS, Query, choice, limit_of
from serena_central.web.responses import Handler
from serena_central.web.tasks import RunTask, Tasks
from serena_central.web.transcripts import GROUPS, MOST_ENTRIES, TranscriptList, TranscriptPage, Transcripts
from serena_central.web.upstreams import Upstreams
from serena_central.web.warming import AskWarmUp, Warming

API = "/api/v1"
"""Another version of the API would have a prefix of its own; within one, answers only gain members."""

BY = Query("by", "Who asked for it, for the log.")
SINCE = Query("since", "Unix seconds.", SECONDS)
BETWEEN = (SINCE, Query("before", "Unix seconds.", SECONDS))
LIST = (LIMIT, CURSOR)
START = Query("start", "Number of the first entry.", {"type": "integer", "minimum": 0, "maximum": 10**9, "default": 0})

OPEN_PATHS = ("/health",)
"""What needs no token: it says nothing that a stranger may not know."""


def routes(
    api: Api,
    metrics: Metrics,
    presence: Presence,
    *,
    hooks: Hooks,
    warming: Warming,
    calls: Calls,
    accounts: AccountRoutes,
    cluster: ClusterRoutes,
    gates: Gates,
    upstreams: Upstreams,
    tasks: Tasks,
    plans: Plans,
    transcripts: Transcripts,
    dashboard: Dashboard,
) -> list[BaseRoute]:
    """All of them: the table of the HTTP API, and the dashboard's."""
    table = [
        *_unversioned(api, metrics),
        *_sessions(api, presence, gates),
        *_users(accounts),
        *_hooks(gates),
        *_tools_and_projects(api, hooks, warming),
        *_servers_and_nodes(api, cluster),
        *_upstreams(upstreams),
        *_tasks(tasks),
        *_plans(plans),
        *_transcripts(transcripts),
        *_records(api, calls),
        *_this_server(api, dashboard),
    ]

    async def show_openapi(_request: Request) -> Any:
        """This document."""
        # Late: nothing else in the server needs it.
        from serena_central.web.openapi import document

        return document(table, api.parts.version)

    table.append(_get("/openapi.json", show_openapi, "This document", "application/json", for_users=True))
    return [*(one.route() for one in table), *dashboard.routes()]


def _unversioned(api: Api, metrics: Metrics) -> list[Operation]:
    return [
        Operation(
            method="GET",
            path="/health",
            handler=api.health,
            summary="Whether the server runs",
            query=(Query("nonce", "64 hexadecimal digits, answered by a proof that the server has the token."),),
            answer=answers.Health,
            is_open=True,
        ),
        Operation(
            method="GET",
            path="/metrics",
            handler=metrics.answer,
            summary="Prometheus metrics",
            answer="text/plain",
            any_query=True,
        ),
    ]


def _sessions(api: Api, presence: Presence, gates: Gates) -> list[Operation]:
    return [
        _get(
            "/sessions",
            api.list_sessions,
            "All sessions",
            answers.SessionList,
            choice("state", "Sessions in this state.", list(SessionState)),
            Query("client", "Sessions of clients of this name."),
            Query("project", "Sessions that work on the project of this name or root."),
            *LIST,
            for_users=True,
        ),
        _post(
            "/sessions",
            api.open_session,
            "Opens a session for a script",
            answers.SessionSnapshot,
            body=OpenSession,
            status=201,
            for_users=True,
        ),
        _get(
            "/sessions/{session}",
            api.show_session,
            "One session, its log and its tools",
            answers.SessionDetails,
            LIMIT,
            for_users=True,
        ),
        Operation(
            method="DELETE",
            path=f"{API}/sessions/{{session}}",
            handler=api.kill_session,
            for_users=True,
            summary="Kills a session",
            answer=answers.SessionSnapshot,
            query=(BY,),
        ),
        _post(
            "/sessions/{session}/close",
            api.close_session,
            "Disconnects a session",
            answers.SessionSnapshot,
            for_users=True,
        ),
        _get(
            "/sessions/{session}/presence",
            presence.hold,
            "Keeps a session connected while the stream is open",
            "text/event-stream",
            for_users=True,
        ),
        _post("/sessions/{session}/revive", api.revive_session, "Revives a killed session", answers.SessionSnapshot),
        _post(
            "/sessions/{session}/resume",
            gates.resume_session,
            "Resumes a halted session",
            answers.Resumed,
            BY,
            for_users=True,
        ),
    ]


def _users(accounts: AccountRoutes) -> list[Operation]:
    return [
        _get("/users", accounts.list_users, "Users of a team", UserList),
        _post("/users", accounts.add_user, "Adds a user", UserToken, body=AddUser, status=201),
        _post("/users/{user}/rotate", accounts.rotate_user, "Gives a user another token", UserToken),
        Operation(
            method="DELETE",
            path=f"{API}/users/{{user}}",
            handler=accounts.revoke_user,
            summary="Revokes a user",
            answer=UserView,
        ),
    ]


def _hooks(gates: Gates) -> list[Operation]:
    return [
        _get("/halted", gates.list_halted, "Sessions that hooks have halted", answers.HaltedList),
        _get(
            "/hooks",
            gates.list_hooks,
            "The hooks of a project's settings",
            answers.HookList,
            Query("project", "A project's name or root.", required=True),
        ),
        _get(
            "/hook-runs",
            gates.list_runs,
            "The newest runs of hooks in a project",
            answers.HookRunList,
            Query("project", "A project's name or root.", required=True),
            LIMIT,
        ),
        _post("/gates/{event}", gates.run, "Runs the hooks of an event of a client", GateAnswer, body=ClientEvent),
    ]


def _tools_and_projects(api: Api, hooks: Hooks, warming: Warming) -> list[Operation]:
    return [
        _get(
            "/tools",
            api.list_tools,
            "The tools that a session is shown",
            answers.ToolList,
            Query("session", "A session's id; without one, the session that all share who name none."),
            choice("unlisted", "Whether tools that it is not shown follow, such as optional ones.", ("true", "false")),
            for_users=True,
        ),
        _post(
            "/tools/{tool}",
            api.call_tool,
            "Calls a tool",
            answers.CallAnswer,
            body=CallTool,
            outcome=answers.CallAnswer,
            for_users=True,
        ),
        _get(
            "/projects",
            api.list_projects,
            "All known projects",
            answers.ProjectList,
            choice("open", "Projects that are open, or are not.", ("true", "false")),
            *LIST,
            for_users=True,
        ),
        _get(
            "/coverage",
            hooks.coverage,
            "Whether symbol tools can find all that a text search would",
            Coverage,
            Query("path", "An absolute path; up to 50.", repeated=True, required=True),
            Query("name", "A glob of file names that are meant; up to 50.", repeated=True),
        ),
        _post(
            "/conversations/close",
            hooks.close_conversation,
            "Disconnects the session of a client's conversation",
            answers.SessionSnapshot,
            body=CloseConversation,
            for_users=True,
        ),
        _post(
            "/warm",
            warming.warm,
            "Starts language servers and fills indexes",
            answers.WarmUpBegun,
            body=AskWarmUp,
            outcome=answers.WarmedModules,
        ),
    ]


def _servers_and_nodes(api: Api, cluster: ClusterRoutes) -> list[Operation]:
    return [
        _get(
            "/servers",
            api.list_servers,
            "All runs of language servers",
            answers.ServerList,
            choice("state", "Runs in this state.", list(RunState)),
            Query("server", "Runs of the language server of this name."),
            Query("root", "Runs for this root."),
            *LIST,
        ),
        _post("/servers/{server}/restart", api.restart_server, "Restarts a language server", answers.Restarted),
        _post("/servers/{server}/stop", api.stop_server, "Stops a language server", answers.Stopped),
        _get("/cluster", cluster.status, "Nodes and project hosts of the cluster", ClusterStatus),
        _get(
            "/cluster/log",
            cluster.records,
            "The newest records of all project hosts' logs",
            NodeRecords,
            Query("session", "Records about the session with this id."),
            LIMIT,
        ),
        _get("/cluster/checks", cluster.checks, "What `serena-central doctor` finds on each node", NodeChecks),
    ]


def _upstreams(upstreams: Upstreams) -> list[Operation]:
    return [
        _get(
            "/upstreams",
            upstreams.list_upstreams,
            "Other MCP servers that the hub reaches",
            answers.UpstreamList,
            Query("project", "Those of the project of this name or root."),
        ),
        _get(
            "/upstreams/{upstream}",
            upstreams.show_upstream,
            "One of these servers, and its tools",
            answers.UpstreamDetails,
            Query("project", "As the project of this name or root has it."),
        ),
        _post("/upstreams/{upstream}/restart", upstreams.restart_upstream, "Restarts one", answers.UpstreamEnded),
        _post("/upstreams/{upstream}/stop", upstreams.stop_upstream, "Stops one", answers.UpstreamEnded),
    ]


def _tasks(tasks: Tasks) -> list[Operation]:
    return [
        _get(
            "/tasks",
            tasks.list_tasks,
            "Tasks: runs of sub-agents",
            answers.TaskList,
            choice("state", "Tasks in this state.", list(TaskState)),
            Query("project", "Tasks in the project of this name or root."),
            Query("parent", "Tasks that this task started."),
            *LIST,
        ),
        _post("/tasks", tasks.run_task, "Starts a task", TaskView, body=RunTask, status=202),
        _get(
            "/tasks/{task}",
            tasks.show_task,
            "One task and its result",
            TaskView,
            Query(
                "wait_s",
                "Wait for its end, 60 seconds at most.",
                {"type": "integer", "minimum": 0, "maximum": 86_400},
            ),
        ),
        _post("/tasks/{task}/cancel", tasks.cancel_task, "Cancels a task", TaskView, BY),
        _post("/tasks/{task}/compact", tasks.compact_task, "Compacts a task's conversation", TaskView),
        _get(
            "/tasks/{task}/output",
            tasks.show_output,
            "What a task wrote",
            answers.TaskOutputLines,
            Query("after", "Lines behind this number.", {"type": "integer", "minimum": 0, "maximum": 2**31}),
            LIMIT,
        ),
    ]


def _plans(plans: Plans) -> list[Operation]:
    return [
        _get(
            "/plans",
            plans.list_plans,
            "Plans: waves of tasks",
            PlanList,
            Query("project", "Plans in the project of this name or root."),
            *LIST,
        ),
        _post("/plans", plans.run_plan, "Runs a plan", PlanView, body=PlanText, status=202),
        _post(
            "/plans/check",
            plans.check_plan,
            "Checks a plan, and shows the order of its tasks",
            PlanCheck,
            body=PlanText,
        ),
        _get("/plan-schema", plans.show_plan_schema, "The JSON schema of plan files", dict[str, Any]),
        _get(
            "/plans/{plan}",
            plans.show_plan,
            "One plan, with its waves and tasks",
            PlanView,
            Query(
                "wait_s",
                "Wait until it is over or waits for a person, 60 seconds at most.",
                {"type": "integer", "minimum": 0, "maximum": 86_400},
            ),
        ),
        _post(
            "/plans/{plan}/waves",
            plans.add_waves,
            "Adds waves to a plan that is done",
            PlanView,
            body=MoreWaves,
            status=202,
        ),
        _post(
            "/plans/{plan}/resume",
            plans.resume_plan,
            "Goes on with what is not done",
            PlanView,
            BY,
            body=Resume,
            status=202,
        ),
        _post("/plans/{plan}/decision", plans.decide_plan, "Approves or declines", PlanView, BY, body=Decision),
        _post("/plans/{plan}/cancel", plans.cancel_plan, "Cancels a plan and its tasks", PlanView, BY),
        _post(
            "/plans/{plan}/undo",
            plans.undo_plan,
            "Undoes the edits of a plan",
            PlanUndone,
            BY,
            Query("wave", "Those of this wave alone."),
            Query("task", "Those of this task alone."),
        ),
    ]


def _transcripts(transcripts: Transcripts) -> list[Operation]:
    return [
        _get(
            "/usage",
            transcripts.show_usage,
            "Tokens and cost of coding agents; days are UTC's",
            answers.UsageAnswer,
            choice("by", "What one row is; default day.", GROUPS),
            SINCE,
        ),
        _get(
            "/transcripts",
            transcripts.list_transcripts,
            "Sessions of clients, the latest first",
            TranscriptList,
            choice("client", "Sessions of this client.", ("claude-code", "codex", "gemini", "messages")),
            Query("project", "Sessions in the project of this root or folder name."),
            Query("text", "Sessions in which this text was said."),
            START,
            LIMIT,
        ),
        _get(
            "/transcripts/{client}/{session}",
            transcripts.show_transcript,
            "What was said in a session",
            TranscriptPage,
            START,
            limit_of(MOST_ENTRIES),
        ),
    ]


def _records(api: Api, calls: Calls) -> list[Operation]:
    return [
        _get(
            "/calls",
            calls.list_calls,
            "Recorded calls",
            answers.CallList,
            Query("session", "Calls of this session."),
            Query("project", "Calls on the project of this name."),
            Query("tool", "Calls of this tool."),
            choice("failed", "Calls that failed.", ("true", "false")),
            *BETWEEN,
            limit_of(MOST_CALLS),
            CURSOR,
            for_users=True,
        ),
        _get("/calls/{call}", calls.show_call, "A recorded call and its edits", answers.CallDetails, for_users=True),
        _get(
            "/edits",
            api.list_edits,
            "All edits",
            answers.EditList,
            Query("session", "Edits of this session."),
            Query("project", "Edits in the project of this name or root."),
            Query("file", "Edits of this file, relative to its root."),
            Query("symbol", "Edits of the symbol of this name path, or of an end of it."),
            *BETWEEN,
            *LIST,
            for_users=True,
        ),
        _post(
            "/sessions/{session}/undo",
            api.undo_session,
            "Undoes a session's edits",
            answers.UndoneEdits,
            BY,
            SINCE,
            for_users=True,
        ),
        _post("/edits/{edit}/undo", api.undo_edit, "Undoes an edit", answers.Undone, BY, for_users=True),
        _get(
            "/events",
            api.list_events,
            "What happened",
            answers.EventList,
            Query("kind", "Events of a kind (session.created) or subject (session)."),
            Query("session", "Events of this session."),
            Query("project", "Events of the project of this name."),
            choice("severity", "Events of this severity.", list(Severity)),
            Query("q", "Events with all of these words in their kind, message or data."),
            *LIST,
            for_users=True,
        ),
    ]


def _this_server(api: Api, dashboard: Dashboard) -> list[Operation]:
    return [
        _get("/schemas", schemas.list_schemas, "Schemas of settings files", answers.SchemaList, for_users=True),
        _get(
            "/schemas/{name}",
            schemas.show_schema,
            "A JSON schema of settings files",
            "application/json",
            for_users=True,
        ),
        _get("/stats", api.show_statistics, "Counters of the whole server", answers.Statistics),
        _post(
            "/dashboard/link",
            dashboard.invite,
            "A link that opens the dashboard in a browser, once",
            answers.DashboardLink,
            body=AskLink,
            status=201,
            for_users=True,
        ),
        _post("/shutdown", api.shut_down, "Stops the server", answers.Stopping, status=202),
    ]


def _get(path: str, handler: Handler, summary: str, answer: Any, *query: Query, for_users: bool = False) -> Operation:
    return Operation(
        method="GET",
        path=API + path,
        handler=handler,
        summary=summary,
        answer=answer,
        query=query,
        for_users=for_users,
    )


def _post(
    path: str,
    handler: Handler,
    summary: str,
    answer: Any,
    *query: Query,
    body: Any = None,
    status: int = 200,
    outcome: Any = None,
    for_users: bool = False,
) -> Operation:
    return Operation(
        method="POST",
        path=API + path,
        handler=handler,
        summary=summary,
        answer=answer,
        outcome=outcome,
        query=query,
        body=body,
        status=status,
        for_users=for_users,
    )
