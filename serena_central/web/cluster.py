"""The cluster in /api: nodes and project hosts, the records of their logs, and the checks of each node."""

from dataclasses import dataclass

from starlette.requests import Request

from serena_central.web.cluster_view import ClusterStatus, ClusterView, NodeChecks, NodeRecords
from serena_central.web.query import DEFAULT_ROWS
from serena_central.web.responses import NotFound
from serena_central.web.web_services import WebServices


@dataclass(frozen=True)
class ClusterRoutes:
    """The cluster in /api."""

    parts: WebServices

    async def status(self, _request: Request) -> ClusterStatus:
        return await self._view.status()

    async def records(self, request: Request) -> NodeRecords:
        query = request.query_params
        return await self._view.records(query.get("session"), int(query.get("limit", DEFAULT_ROWS)))

    async def checks(self, _request: Request) -> NodeChecks:
        return await self._view.checks()

    @property
    def _view(self) -> ClusterView:
        if self.parts.cluster is None:
            raise NotFound("This server has no cluster. Start it with `serena-central serve --cluster ADDRESS`.")
        return self.parts.cluster
