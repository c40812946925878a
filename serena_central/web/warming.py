"""POST /api/v1/warm: starts a warm-up and streams its progress, or leaves it running in the background."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request

from serena_central.core.errors import InvalidArguments
from serena_central.core.progress import Listener
from serena_central.projects.warming.warm_up_jobs import WarmUp
from serena_central.web.lines import Lines
from serena_central.web.responses import body_of


class AskWarmUp(msgspec.Struct, forbid_unknown_fields=True):
    """`folder` is absolute; without `modules`, all of the super-repo at it, or the project around it."""

    folder: str
    modules: list[str] = []
    background: bool = False
    only_default: bool = False


@dataclass(frozen=True)
class Warming:
    """The handler of the route."""

    warm_up: WarmUp

    async def warm(self, request: Request) -> Any:
        """In the background: roots and names of what was begun with. Else `Lines` of progress, the outcome
        `{"modules": …}`.

        The warm-up continues if its caller disconnects.
        """
        asked = await body_of(request, AskWarmUp)
        if not asked.folder.startswith("/"):
            raise InvalidArguments("folder must be an absolute path.")
        chosen = await self.warm_up.by.choose(Path(asked.folder), asked.modules, only_default=asked.only_default)
        job = self.warm_up.start(chosen)
        if asked.background:
            names = [chosen.name_of(root) for root in chosen.roots]
            return {"started": [str(root) for root in chosen.roots], "names": names}

        async def follow(say: Listener) -> Any:
            async for message in job.follow():
                say(message, None)
            return {"modules": job.modules}

        return Lines(follow)
