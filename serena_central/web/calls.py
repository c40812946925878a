"""The API's routes of recorded calls: /api/v1/calls."""

from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request

from serena_central.core.errors import InvalidArguments
from serena_central.store.query_results import CallFilter, EditFilter, RecordedCall
from serena_central.web.responses import NotFound, number_in, seconds_in
from serena_central.web.web_services import WebServices

MOST_CALLS = 500


@dataclass(frozen=True)
class Calls:
    """The handlers, over the parts of the server that they show."""

    parts: WebServices

    async def list_calls(self, request: Request) -> Any:
        """Newest first; `session`, `project` (a name), `tool` and `failed` (true) choose, `since` and `before` (Unix
        seconds) bound. `next_before` continues; null: there are no more."""
        query = request.query_params
        limit = number_in(request, "limit", default=100, most=MOST_CALLS)
        failed = query.get("failed", "false")
        if failed not in ("true", "false"):
            raise InvalidArguments("failed must be true or false.")
        wanted = CallFilter(
            session=query.get("session"),
            project=query.get("project"),
            tool=query.get("tool"),
            failed=failed == "true",
            since=seconds_in(request, "since") or 0.0,
            before=seconds_in(request, "before"),
            limit=limit + 1,
        )
        await self.parts.store.writer.caught_up()
        found = await self.parts.store.ask(lambda queries: queries.calls(wanted))
        calls = found[:limit]
        return {
            "calls": [call_view(one) for one in calls],
            "next_before": calls[-1].call.at if len(found) > limit else None,
        }

    async def show_call(self, request: Request) -> Any:
        """One call that has ended, with the ids of the edits that it made."""
        call_id = request.path_params["call"]
        await self.parts.store.writer.caught_up()
        found = await self.parts.store.ask(lambda queries: queries.call(call_id))
        if found is None:
            raise NotFound(f"There is no call {call_id!r}. GET /api/v1/calls lists those that are stored.")
        wanted = EditFilter(session=found.call.session, call=call_id)
        edits = await self.parts.history.edits(wanted)
        return {**call_view(found), "edits": [one.id for one in edits]}


def call_view(recorded: RecordedCall) -> dict[str, Any]:
    """A call as /api shows it: its counters and, as far as they were kept, its details."""
    detail = msgspec.structs.asdict(recorded.detail) if recorded.detail else {}
    own = msgspec.structs.asdict(recorded.call)
    return {
        **{name: value for name, value in detail.items() if name != "error"},
        **own,
        "error_text": detail.get("error"),
    }
