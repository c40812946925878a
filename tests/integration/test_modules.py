"""Modules asked at once: one whose language server hangs or is broken spoils no other's answer, and says why."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.central import running_central
from tests.support.mcp import RawClient
from tests.support.scripted import REFERENCES, SYMBOLS, behave, scripted_project, scripted_ty

pytestmark = pytest.mark.anyio

CONFIGURATION = """\
type: super-repo
default_module: shop
modules:
  shop: {path: shop}
  hung: {path: hung}
  broken: {path: broken}
"""

DEFINITION = "textDocument/definition"


@asynccontextmanager
async def modules(folder: Path) -> AsyncGenerator[RawClient]:
    """One module that answers, one whose server starts and says nothing, and one whose server can't start."""
    scripted_ty(folder)
    for name in ("shop", "hung", "broken"):
        scripted_project(folder, name)
    place = {"start": {"line": 2, "character": 8}, "end": {"line": 2, "character": 14}}
    behave(folder, "shop", answers={REFERENCES: [{"uri": (folder / "shop/cart.py").as_uri(), "range": place}]})
    behave(folder, "hung", hang_on=[SYMBOLS, REFERENCES, DEFINITION])
    (folder / "scripts/broken").write_text("no script\n")
    (folder / ".serena").mkdir()
    (folder / ".serena/project.yml").write_text(CONFIGURATION)
    async with running_central(folder) as central, central.raw("handshake", x_serena_project=str(folder)) as client:
        yield client


async def groups(client: RawClient, tool: str, **arguments: Any) -> tuple[dict[str, Any], str]:
    result = await client.call(tool, project="*", **arguments)
    answer, *notes = (part["text"] for part in result["content"])
    assert not result["isError"], answer
    return json.loads(answer), "\n".join(notes)


async def test_a_find_answers_for_all_by_syntax_where_a_server_says_nothing(tmp_path: Path) -> None:
    async with modules(tmp_path) as client:
        found, notes = await groups(client, "find_symbol", name_path_pattern="Cart/total")
        assert sorted(found) == ["broken", "hung", "shop"]
        assert [one["name_path"] for group in found.values() for one in group] == ["Cart/total"] * 3
        assert "'hung': By syntax only" in notes
        assert "'broken': By syntax only" in notes
        assert "shop':" not in notes


async def test_a_search_needs_no_server(tmp_path: Path) -> None:
    async with modules(tmp_path) as client:
        found, _ = await groups(client, "search_for_pattern", substring_pattern="def total")
        assert [list(group) for group in found.values()] == [["cart.py"]] * 3


async def test_references_are_told_for_those_that_answer_and_the_others_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serena_central.tools.grouped_call.PART_S", 8.0)
    async with modules(tmp_path) as client:
        found, _ = await groups(client, "find_referencing_symbols", name_path="Cart/total")
        assert list(found["shop"]) == ["cart.py"]
        assert "Reason: the language server ty has not answered for " in found["hung"]["error"]
        assert "ty did not start" in found["broken"]["error"]


def shop_and_web(folder: Path) -> None:
    """A module that declares `Cart`, and one that uses it."""
    scripted_ty(folder)
    scripted_project(folder, "shop")
    (folder / "web").mkdir()
    (folder / "web/use.py").write_text("from cart import Cart\n\nCart().total()\n")
    (folder / ".serena").mkdir()
    (folder / ".serena/project.yml").write_text("type: super-repo\nmodules: {shop: {path: shop}, web: {path: web}}\n")


@pytest.mark.parametrize("resolves", [True, False])
async def test_a_place_in_a_sibling_is_a_use_if_it_leads_to_the_declaration_and_else_is_counted(
    tmp_path: Path, resolves: bool
) -> None:
    shop_and_web(tmp_path)
    name = {"start": {"line": 1, "character": 8}, "end": {"line": 1, "character": 13}}
    leads = [{"uri": (tmp_path / "shop/cart.py").as_uri(), "range": name}] if resolves else []
    behave(tmp_path, "web", answers={DEFINITION: leads, SYMBOLS: []})
    async with (
        running_central(tmp_path) as central,
        central.raw("handshake", x_serena_project=str(tmp_path)) as client,
    ):
        found, notes = await groups(client, "find_referencing_symbols", name_path="Cart/total")
        assert list(found["web"]) == (["use.py"] if resolves else [])
        assert ("'web': Possibly incomplete: total cannot be resolved in 1 place" in notes) is not resolves


async def test_what_a_sibling_may_use_is_not_unused_where_its_server_can_not_be_asked(tmp_path: Path) -> None:
    shop_and_web(tmp_path)
    (tmp_path / "scripts/web").write_text("no script\n")
    async with running_central(tmp_path) as central, central.raw("handshake") as client:
        result = await client.call("find_unused_symbols", project=str(tmp_path / "shop"))
        answer, notes = (part["text"] for part in result["content"])
        assert json.loads(answer)["unused"] == []
        assert "'web': The language server ty did not start" in notes
        assert "Not reported as unused: Cart, total. These names occur in 'web', where" in notes


async def test_a_sibling_that_chose_another_server_which_is_not_run_for_lack_of_trust_is_not_left_out(
    tmp_path: Path,
) -> None:
    shop_and_web(tmp_path)
    (tmp_path / "web/.serena").mkdir()
    (tmp_path / "web/.serena/project.yml").write_text("language_servers: {python: basedpyright}\n")
    untrusted = {"trusted_roots": [str(tmp_path / "shop")]}
    async with (
        running_central(tmp_path, untrusted) as central,
        central.raw("handshake", x_serena_project=str(tmp_path)) as client,
    ):
        found, _ = await groups(client, "find_referencing_symbols", name_path="Cart/total")
        assert "basedpyright for python was not started" in found["web"]["error"]
        path = "shop/cart.py"
        refused = await client.call("safe_delete_symbol", name_path_pattern="Cart/total", relative_path=path)
        assert refused["isError"]
        assert "basedpyright for python was not started" in refused["content"][0]["text"]
        unused = await client.call("find_unused_symbols", project=str(tmp_path / "shop"))
        answer, notes = (part["text"] for part in unused["content"])
        assert json.loads(answer)["unused"] == []
        assert "Not reported as unused: Cart, total. These names occur in 'web'" in notes
