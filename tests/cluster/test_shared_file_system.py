"""A project on a file system that others change behind this machine's back: a real one in user space (FUSE), whose
folders are changed past it, as another machine changes those that both share."""

import json
import subprocess
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.child import serving_child

pytestmark = [pytest.mark.cluster, pytest.mark.anyio]

CHECKOUT = Path(__file__).parents[2]

UNCACHED = "attr_timeout=0,entry_timeout=0,negative_timeout=0"
"""The kernel keeps nothing of what it saw: how long it may is the mount's business (NFS: actimeo), not ours."""


@pytest.fixture
def there(tmp_path: Path) -> Generator[Path]:
    """The folder as another machine has it; this one has it at `tmp_path / "here"`."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    got = subprocess.run([CHECKOUT / "scripts/get-bindfs"], capture_output=True, text=True, check=True)
    mounted = subprocess.run(
        [got.stdout.strip(), "-o", UNCACHED, there, here], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"this system mounts no file system in user space: {mounted.stderr.strip()}")
    try:
        yield there
    finally:
        subprocess.run(["umount", here], check=True)


@pytest.fixture
async def http(there: Path, tmp_path: Path) -> AsyncGenerator[httpx.AsyncClient]:
    (there / "shop/.git").mkdir(parents=True)
    (there / "shop/cart.py").write_text("class Cart:\n    size = 1\n")
    (tmp_path / "server").mkdir()
    async with serving_child(tmp_path / "server") as child, child.http() as client:
        yield client


async def test_what_another_machine_changes_is_in_the_next_answer_which_says_that_files_are_compared(
    http: httpx.AsyncClient, there: Path, tmp_path: Path
) -> None:
    root = tmp_path / "here/shop"

    async def call(tool: str, **arguments: Any) -> httpx.Response:
        body = {"arguments": {**arguments, "project": str(root)}, "session": "window"}
        return await http.post(f"/api/v1/tools/{tool}", json=body)

    async def names(pattern: str) -> list[str]:
        answer = (await call("find_symbol", name_path_pattern=pattern)).json()
        assert "does not report changes by other machines" in json.dumps(answer["blocks"])
        return [one["name_path"] for one in json.loads(answer["blocks"][0])]

    assert await names("Cart") == ["Cart"]
    for number in range(5):
        (there / "shop/cart.py").write_text(f"class Cart{number}:\n    size = 1\n")
        (there / f"shop/deep{number}").mkdir()
        (there / f"shop/deep{number}/more.py").write_text(f"class More{number}: ...\n")
        assert await names(f"Cart{number}") == [f"Cart{number}"]
        assert await names(f"More{number}") == [f"More{number}"]
        found = (await call("search_for_pattern", substring_pattern="class Cart")).json()["blocks"][0]
        assert f"class Cart{number}:" in found
        (there / f"shop/deep{number}/more.py").unlink()
        assert await names(f"More{number}") == []

    read = await call("find_symbol", name_path_pattern="Cart4", include_body=True)
    assert "size = 1" in read.text
    (there / "shop/cart.py").write_text("class Cart4:\n    size = 2\n")
    edit = {"name_path": "Cart4", "relative_path": "cart.py", "body": "class Cart4:\n    size = 3\n"}
    refused = await call("replace_symbol_body", **edit)
    assert refused.status_code >= 400
    assert "size = 2" in refused.text
    await call("find_symbol", name_path_pattern="Cart4", include_body=True)
    made = await call("replace_symbol_body", **edit)
    assert made.status_code == 200, made.text
    assert (there / "shop/cart.py").read_text() == "class Cart4:\n    size = 3\n"
