"""The API's routes of recorded calls: /api/v1/calls."""

from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request

from serena_central.store.query_results import CallFilter, EditFilter, StoredCall
from serena_central.web.cursors import Cursors
from serena_central.web.ownership import owner_of, owns
from serena_central.web.query import limit_in, seconds_in
from serena_central.web.responses import NotFound
from serena_central.web.web_services import WebServices

MOST_CALLS = 500

CALLS = Cursors("calls", tuple[float, str])


@dataclass(frozen=True)
class Calls:
    """The handlers, over the parts of the server that they show."""

    parts: WebServices

    async def list_calls(self, request: Request) -> Any:
        """Newest first; `session`, `project` (a name), `tool` and `failed` (true) choose, `since` and `before` (Unix
        seconds) bound."""
        query, limit = request.query_params, limit_in(request)
        wanted = CallFilter(
            owner=owner_of(request),
            session=query.get("session"),
            project=query.get("project"),
            tool=query.get("tool"),
            failed=query.get("failed") == "true",
            since=seconds_in(request, "since") or 0.0,
            before=seconds_in(request, "before"),
            behind=CALLS.read(request),
            limit=limit + 1,
        )
        await self.parts.store.writer.caught_up()
        found = await self.parts.store.ask(lambda queries: queries.calls(wanted))
        calls = found[:limit]
        return {
            "calls": [call_view(one) for one in calls],
            "next_cursor": CALLS.write((calls[-1].call.at, calls[-1].call.id))
            if calls and len(found) > limit
            else None,
        }

    async def show_call(self, request: Request) -> Any:
        """One call that has ended, with the ids of the edits that it made and the files that these changed."""
        call_id = request.path_params["call"]
        await self.parts.store.writer.caught_up()
        found = await self.parts.store.ask(lambda queries: queries.call(call_id))
        owner = owner_of(request)
        if found is None or (
            owner is not None and not await owns(owner, found.call.session, found.call.at, self.parts)
        ):
            raise NotFound(f"There is no call {call_id!r}. GET /api/v1/calls lists those that are stored.")
        wanted = EditFilter(session=found.call.session, call=call_id)
        edits = await self.parts.history.edits(wanted)
        files = {str(file[key]) for one in edits for file in one.files for key in ("path", "moved_to") if file.get(key)}
        return {**call_view(found), "edits": [one.id for one in edits], "files": sorted(files)}


def call_view(recorded: StoredCall) -> dict[str, Any]:
    """A call as /api shows it: its counters and, as far as they were kept, its details."""
    detail = msgspec.structs.asdict(recorded.detail) if recorded.detail else {}
    own = msgspec.structs.asdict(recorded.call)
    return {
        **{name: value for name, value in detail.items() if name != "error"},
        **own,
        "error_text": detail.get("error"),
    }
