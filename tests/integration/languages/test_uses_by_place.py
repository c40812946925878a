"""References by place, of which the real server lists the same."""

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.lsp.answers import Location
from serena_central.lsp.client import LanguageServer
from serena_central.projects.navigation import symbol_references, uses_by_place
from serena_central.projects.navigation.symbol_views import References
from serena_central.projects.navigation.uses_by_place import Told, UsesByPlace
from serena_central.symbols.index import Hit
from tests.support.languages import Asker, asker

pytestmark = pytest.mark.anyio

FILES = {
    "pyproject.toml": "[project]\nname = 'shop'\n",
    "shop/__init__.py": "from shop.prices import net as net, total\n\n__all__ = ['net', 'total']\n",
    "shop/prices.py": '''\
"""total is told in words, net is not."""
import sys
from typing import overload

RATE = 0.2
RATE = RATE + 0


def net(amount: "Amount", rate=RATE):
    return amount


def total(amounts):
    return sum(net(one, rate=0) for one in amounts)  # net of each


@overload
def rounded(amount: int) -> int: ...
@overload
def rounded(amount: str) -> str: ...
def rounded(amount):
    return amount


if sys.platform == "win32":
    def clock(): return net(1)
else:
    def clock(): return net(2)


try:
    from fast import speedy
except ImportError:
    def speedy(amount): return total([amount])


class Amount:
    limit = 3

    def __init__(self, value):
        self.value = value
        self.hidden = ()

    @property
    def size(self):
        return self.value

    @size.setter
    def size(self, value):
        self.value = value

    def doubled(self):
        if self.hidden:
            return self.tripled()
        return Amount(self.value * 2)

    def tripled(self):
        return self.limit


class Discount(Amount):
    limit = 4

    def doubled(self):
        return super().doubled()


def handler(amount): return amount
handler = staticmethod(handler)
''',
    "shop/bulk.py": """\
from functools import partial

from shop.prices import total

total = partial(total, ())


def ordered(amounts):
    return total(amounts)
""",
    "shop/orders.py": """\
from shop import net, total as whole
from shop.prices import *
from shop.prices import Amount as A, clock, handler, rounded, speedy
import shop.prices as prices


def order(amount: "A", unknown):
    whole([net(amount)])
    prices.total([prices.net(amount)])
    rounded(clock()), speedy(handler(amount))
    unknown.doubled(), amount.doubled(), Discount(1).doubled()
    amount.size = amount.limit
    total = amount.tripled()
    return getattr(prices, "net")(total)


class Other:
    def doubled(self): ...
    def net(self): return self.net()
""",
}


class Counting:
    """Questions for lists of references, and uses told by places."""

    def __init__(self) -> None:
        self.lists = 0
        self.told = 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting, listed, told = Counting(), LanguageServer.references, UsesByPlace.of

    async def references(*asked: Any, **more: Any) -> list[Location]:
        counting.lists += 1
        return await listed(*asked, **more)

    async def of(self: UsesByPlace, *asked: Any) -> Told | None:
        found = await told(self, *asked)
        counting.told += found is not None
        return found

    monkeypatch.setattr(symbol_references, "HEAD_START_S", 30)  # however slow this machine is
    monkeypatch.setattr(LanguageServer, "references", references)
    monkeypatch.setattr(UsesByPlace, "of", of)
    return counting


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Asker]:
    root = tmp_path / "shop"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    async with asker(tmp_path, root) as ask:
        await ask.result("find_symbol", name_path_pattern="net")
        yield ask


def essence(found: References) -> Any:
    uses = sorted((use.path, use.range.start.line0, use.range.start.column) for use in found.references)
    return uses, found.outside, found.note, found.caveat, found.possible


async def by_list(ask: Asker, hit: Hit, monkeypatch: pytest.MonkeyPatch) -> References:
    with monkeypatch.context() as patched:
        patched.setattr(UsesByPlace, "may_tell", lambda *_: False)
        return await ask.project.navigation.references.of(hit)


NAMES = (
    *("RATE", "net", "total", "rounded", "clock", "speedy", "handler", "Amount", "Discount", "order"),
    *("limit", "size", "doubled", "tripled", "__init__", "value", "hidden", "Other"),
)


async def test_places_tell_what_the_server_lists(
    shop: Asker, counted: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    hits = [hit for name in NAMES for hit in (await shop.project.find(name)).hits]

    assert len(hits) > len(NAMES)
    for hit in hits:
        found = await shop.project.navigation.references.of(hit)
        assert essence(found) == essence(await by_list(shop, hit, monkeypatch)), hit.name_path
    assert 0 < counted.told < len(hits)


async def test_a_server_that_is_asked_for_places_lists_no_references(shop: Asker, counted: Counting) -> None:
    places = await shop.uses("Amount/tripled")

    assert [place.partition(" ")[0] for place in places] == ["shop/orders.py:12:19"]
    assert (counted.told, counted.lists) == (1, 0)


async def test_a_file_that_uses_it_since_is_asked_about(shop: Asker, counted: Counting) -> None:
    before = await shop.uses("Amount/tripled")
    (shop.root / "shop" / "later.py").write_text("from shop.prices import Amount\n\nAmount(1).tripled()\n")

    after = await shop.uses("Amount/tripled")

    assert {*after} - {*before} == {"shop/later.py:2:10 -"}
    assert (counted.told, counted.lists) == (2, 0)


async def test_a_use_that_moves_while_places_are_asked_about_is_found(
    shop: Asker, counted: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, text = (
        shop.root / "shop" / "one.py",
        shop.root / "shop" / "two.py",
        "from shop.prices import *\n\nspeedy(1)\n",
    )
    one.write_text(text)
    told = UsesByPlace.of

    async def of(self: UsesByPlace, *asked: Any) -> Told | None:
        two.write_text(text)
        one.write_text("")
        return await told(self, *asked)

    monkeypatch.setattr(UsesByPlace, "of", of)

    places = await shop.uses("speedy")

    assert [place for place in places if "orders" not in place] == ["shop/two.py:2:0 -"]
    assert (counted.told, counted.lists) == (1, 1)


@pytest.mark.parametrize(("before", "after"), [("red", "blue"), ("blue", "red")])
async def test_places_that_were_asked_about_before_and_after_a_change_tell_nothing(
    shop: Asker, counted: Counting, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    """`red` is told by place at first, `blue` listed, and of the rest of the name it is asked where it leads."""
    folder, asked, definitions = shop.root / "shop", anyio.Event(), LanguageServer.definitions
    (folder / "hub.py").write_text(f"from shop.{before} import *\n")
    for name in ("red", "blue"):
        (folder / f"{name}.py").write_text("def paint(): ...\n")
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text("from shop import hub\n\nhub.paint()\n")
    hit = await shop.project.find_one("paint", "shop/red.py")

    async def asks(self: LanguageServer, path: Path, *places: Any) -> Any:
        if path.name == "two.py" and not asked.is_set():
            await asked.wait()
            (folder / "hub.py").write_text(f"from shop.{after} import *\n")
            await shop.project.fresh()
        found = await definitions(self, path, *places)
        if path.name == "one.py":
            asked.set()
        return found

    monkeypatch.setattr(LanguageServer, "definitions", asks)

    found = await (shop.project.navigation.references.of(hit) if before == "red" else by_list(shop, hit, monkeypatch))

    uses = ["shop/one.py", "shop/two.py"] if after == "red" else []
    assert [use.path for use in found.references] == uses
    assert found.note is None


OUTSIDE = "from shop.prices import net\n\nnet(1)\n"


LEFT_OUT = ["repository", "setting", "output", "ignored outside of a repository", "links", "outer project"]
SETTINGS = {".ignore": "!other/\n", "ty.toml": "[src]\nrespect-ignore-files = false\n"}


@pytest.mark.parametrize(
    "kind", [*LEFT_OUT, *SETTINGS, "ignored .ignore", "linked ty.toml", "outer .ignore", "user's ty.toml"]
)
async def test_uses_in_files_that_are_left_out_are_counted(
    tmp_path: Path, counted: Counting, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    root, users = tmp_path / "shop", tmp_path / "user" / ".config" / "ty"
    users.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(users.parent.parent))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name, text in {**FILES, "other/uses.py": OUTSIDE}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    settings: dict[str, Any] = {}
    if kind == "repository":
        (root / "other" / ".git").mkdir()
    elif kind == "setting":
        settings = {"ignored_paths": ["other"]}
    elif kind == "output":
        (root / "other" / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n")
    elif name := next((name for name in SETTINGS if name in kind), None):
        (root / ".git").mkdir()
        (root / ".gitignore").write_text("other/\n.ignore\n" if "ignored" in kind else "other/\n")
        folders = {"outer": tmp_path, "linked": tmp_path, "user's": users}
        (folders.get(kind.partition(" ")[0], root) / name).write_text(SETTINGS[name])
        if kind.startswith("linked"):
            (root / name).symlink_to(tmp_path / name)
    elif kind == "links":
        (root / "other" / "uses.py").rename(tmp_path / "uses.py")
        (root / "other" / "uses.py").symlink_to(tmp_path / "uses.py")
    elif kind == "outer project":
        (root / "other" / "uses.py").rename(tmp_path / "uses.py")
        (tmp_path / "ty.toml").write_text("[environment]\nroot = ['shop']\n")
    else:
        (root / ".gitignore").write_text("other/\n")
    async with asker(tmp_path, root, settings) as ask:
        await ask.result("find_symbol", name_path_pattern="net")
        found = await ask.project.navigation.references.of(await ask.project.find_one("net", "shop/prices.py"))

    assert (counted.told, counted.lists) == (0, 1)
    assert found.outside == 2


async def test_a_link_counts_while_it_is_there_and_is_the_servers(shop: Asker, counted: Counting) -> None:
    (shop.root.parent / "uses.py").write_text(OUTSIDE)
    (shop.root / "NOTES.md").symlink_to("shop/prices.py")
    (shop.root / "linked").mkdir()
    (shop.root / "folder.py").symlink_to("shop")
    link, references = shop.root / "linked" / "uses.py", shop.project.navigation.references

    async def asked() -> tuple[int, int]:
        await shop.result("find_symbol", name_path_pattern="net")  # passes the barrier
        await references.of(await shop.project.find_one("net", "shop/prices.py"))
        return counted.told, counted.lists

    assert await asked() == (1, 0)
    link.symlink_to(shop.root.parent / "uses.py")
    assert await asked() == (1, 1)
    link.unlink()
    assert await asked() == (2, 1)
    link.symlink_to(shop.root.parent / "uses.py")
    assert await asked() == (2, 2)
    shutil.rmtree(shop.root / "linked")
    assert await asked() == (3, 2)


@pytest.mark.parametrize("spelled", ["\ufb01ne", "\uff46ine", "f\U0001d456ne"])
async def test_uses_in_another_spelling_are_listed(shop: Asker, counted: Counting, spelled: str) -> None:
    (shop.root / "shop" / "fines.py").write_text("def fine(): ...\ndef other(): ...\n\nother()\n")
    text = "# \u2026 %s\u201d\nfrom shop import fines\n\nfines.fine()\nfines.%s()\n"
    (shop.root / "shop" / "odd.py").write_text(text % ("fine", spelled))

    assert await shop.uses("fine") == ["shop/odd.py:3:6 -", "shop/odd.py:4:6 -"]
    assert (counted.told, counted.lists) == (0, 1)
    await shop.uses("other")
    assert (counted.told, counted.lists) == (1, 1)
    (shop.root / "shop" / "odd.py").write_text(text % ("fine", "fine"))
    assert await shop.uses("fine") == ["shop/odd.py:3:6 -", "shop/odd.py:4:6 -"]
    assert (counted.told, counted.lists) == (2, 1)


async def test_what_is_defined_elsewhere_as_well_is_listed(
    shop: Asker, counted: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop.root / "shop" / "fees.py").write_text("fee = 1\n")
    (shop.root / "shop" / "again.py").write_text("from shop.fees import *\n\nprint(fee)\nfee = 2\nprint(fee)\n")
    hit = await shop.project.find_one("fee", "shop/again.py")

    found = await shop.project.navigation.references.of(hit)

    assert (counted.told, counted.lists) == (0, 1)
    assert essence(found) == essence(await by_list(shop, hit, monkeypatch))


async def test_a_root_full_of_links_is_left_to_the_list(
    shop: Asker, counted: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uses_by_place, "MOST_LINKS", 2)
    for number in range(2):
        (shop.root / f"NOTES-{number}.md").symlink_to("shop/prices.py")
    await shop.uses("Amount/tripled")
    (shop.root / "NOTES-2.md").symlink_to("shop/prices.py")
    await shop.uses("Amount/tripled")

    assert (counted.told, counted.lists) == (1, 1)
