"""The static files of the dashboard, read once at the start and served from memory.

Their address holds a digest of them and of the templates: browsers keep them for good, and an open page can tell that
it was made by another version of the server.
"""

import hashlib
import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from serena_central.core.resources import dashboard_folder
from serena_central.web.answers import NotFound

FOR_GOOD = "public, max-age=31536000, immutable"


class Assets:
    """`digest` changes with any file of the dashboard."""

    def __init__(self) -> None:
        folder = dashboard_folder()
        static = folder / "static"
        self._files = {str(file.relative_to(static)): file.read_bytes() for file in _files_in(static)}
        digest = hashlib.blake2b(digest_size=8)
        for file in _files_in(folder):
            digest.update(file.read_bytes())
        self.digest = digest.hexdigest()

    async def answer(self, request: Request) -> Response:
        """One file. Raises NotFound."""
        name = request.path_params["name"]
        content = self._files.get(name)
        if content is None or request.path_params["digest"] != self.digest:
            raise NotFound("There is no such file.")
        kind = mimetypes.guess_type(name)[0] or "text/plain"
        return Response(content, media_type=kind, headers={"cache-control": FOR_GOOD})


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
