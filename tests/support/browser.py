"""A browser without a screen or a script: signed in, sending forms as a page does."""

import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from unittest.mock import patch

import httpx

from tests.support.central import RunningCentral


class Visitor:
    """One browser that is signed in to the dashboard of a running server."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url

    async def see(self, path: str = "") -> str:
        """The HTML of a page below /dashboard."""
        response = await self.http.get(f"/dashboard{path}")
        assert response.status_code == 200, response.text
        return response.text

    async def csrf(self, path: str = "") -> str:
        found = re.search(r'name="csrf" value="(\w+)"', await self.see(path))
        assert found
        return found[1]

    async def act(
        self, path: str, fields: Mapping[str, str | list[str]] = {}, headers: Mapping[str, str] = {}
    ) -> httpx.Response:
        """Sends a form as a page of this server does."""
        data = {"csrf": await self.csrf()} | dict(fields)
        return await self.http.post(f"/dashboard{path}", data=data, headers={"origin": self.url} | dict(headers))


@asynccontextmanager
async def visiting(central: RunningCentral) -> AsyncGenerator[Visitor]:
    """A browser that came in by a one-time link. The usage page finds no transcripts of whoever runs the tests."""
    nobodys = dict.fromkeys(("CODEX_HOME", "GEMINI_CLI_HOME"), os.devnull)
    with patch.dict(os.environ, nobodys):
        async with httpx.AsyncClient(base_url=central.url, timeout=60) as http:
            response = await http.get(central.central.dashboard.one_time_link())
            assert response.status_code == 200
            yield Visitor(http, central.url)


def shown(html: str) -> str:
    """The words of a page, without its tags."""
    return unescape(re.sub(r"<[^>]*>", " ", html.replace("<wbr>", "")))


def hidden_fields(html: str) -> dict[str, str]:
    """The fields of the form that asks before a tool is called."""
    form = html.partition('id="answer"')[2].partition("</form>")[0]
    return {unescape(name): unescape(value) for name, value in re.findall(r'name="([^"]*)" value="([^"]*)"', form)}
