"""The static files of the dashboard, read once at the start and served from memory.

Their address holds a digest of them and of the templates: browsers keep them for good, and an open page can tell that
it was made by another version of the server.
"""

import hashlib
import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from serena_central.core.resources import dashboard_folder

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
        """One file, by `DIGEST/NAME`, for everybody: a stranger sees these files, too."""
        digest, _, name = request.path_params["name"].partition("/")
        content = self._files.get(name)
        if content is None or digest != self.digest:
            return PlainTextResponse("There is no such file.", 404)
        kind = mimetypes.guess_type(name)[0] or "text/plain"
        return Response(content, media_type=kind, headers={"cache-control": FOR_GOOD})


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
