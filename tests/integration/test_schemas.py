"""The schemas of settings files are published with their version, behind the token as all of /api."""

from pathlib import Path

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.support.central import running_central

pytestmark = pytest.mark.anyio


async def test_every_listed_schema_is_one_and_says_its_version(tmp_path: Path) -> None:
    async with running_central(tmp_path) as running, running.http() as http:
        found = (await http.get("/api/v1/schemas")).json()["schemas"]
        assert [one["name"] for one in found] == ["settings", "mcp-servers"]
        for one in found:
            schema = (await http.get(one["url"])).json()
            Draft202012Validator.check_schema(schema)
            assert schema["version"] == one["version"]
            assert "mcpServers" in schema["properties"]
        gone = await http.get("/api/v1/schemas/x")
        assert gone.status_code == 404
        assert "settings, mcp-servers" in gone.text
        async with httpx.AsyncClient(base_url=running.url) as stranger:
            assert (await stranger.get("/api/v1/schemas/settings")).status_code == 401
