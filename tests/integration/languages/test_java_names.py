"""New names that Java gives a meaning of its own; read by syntax, without a language server."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from serena_central.core.errors import EditRefused
from serena_central.core.text import Position, Range
from serena_central.editing.plan import TextEdit
from serena_central.editing.rename import Rename
from serena_central.lsp.answers import Location, Replacement, SymbolKind, WorkspaceEdit
from serena_central.projects.navigation.leads import Answers
from serena_central.projects.navigation.places_in_code import PlaceInCode
from serena_central.projects.navigation.symbol_views import Uses
from serena_central.projects.refactoring.joined_methods import of_joined
from serena_central.projects.refactoring.kept_names import of_others
from serena_central.projects.refactoring.name_conflicts import Naming
from serena_central.projects.refactoring.overriding import overriding
from serena_central.projects.refactoring.record_components import of_same_accessor
from serena_central.projects.refactoring.refusals import name_range
from serena_central.symbols.index import Hit
from serena_central.symbols.symbol import FileSymbols, Symbol
from tests.support.languages import asker

pytestmark = pytest.mark.anyio


async def test_no_type_takes_the_name_of_one_that_all_code_sees(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Box.java").write_text("class Box {\n  int size() { return 1; }\n}\n")
    async with asker(tmp_path, root) as asked:
        project = asked.project
        await project.fresh()
        naming = Naming(project.tree, project.index, project.indexer, project.languages, project.navigation.possible)
        box, size = [await project.find_one(name, "Box.java") for name in ("Box", "Box/size")]
        said = {new: await naming.objections(box, new) for new in ("Override", "record", "Crate")}
        assert said["Override"] == ["All code sees a type Override of the language's own, which it would hide."]
        assert said["record"] == ["record is a keyword of java."]
        assert said["Crate"] == []
        assert await naming.objections(size, "hashCode") == [
            "Every type has a member hashCode, which it would override or hide."
        ]


async def test_a_file_that_no_server_reads_leaves_nothing_unknown_about_types_of_java(tmp_path: Path) -> None:
    """Without Kotlin's server its files are never read: "call again" would be said for ever."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Base.java").write_text("class Base {\n  int size() { return 1; }\n}\n")
    (root / "Box.java").write_text("class Box extends Base {\n  int count() { return size(); }\n}\n")
    (root / "Use.kt").write_text("fun use() = Base().size()\n")
    async with asker(tmp_path, root) as asked:
        project = asked.project
        await project.fresh()
        naming = Naming(project.tree, project.index, project.indexer, project.languages, project.navigation.possible)
        count = await project.find_one("Box/count", "Box.java")
        assert await naming.objections(count, "total") == []
        assert await naming.objections(count, "size") == [
            "It would override or hide another member, or be overridden or hidden: 'Base/size in Base.java'."
        ]


async def test_methods_of_anonymous_classes_are_found_that_a_rename_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jdtls does so where a parameter's type comes from the class. It can't be installed for tests: its answers, as
    they were seen, stand for it."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Box.java").write_text(
        "abstract class Box<T> {\n  abstract void put(T one);\n"
        "  static final Box<String> WORDS = new Box<String>() {\n    void put(String one) {}\n  };\n}\n"
    )
    (root / "Big.java").write_text("class Big extends Box<Long> {\n  void put(Long one) {}\n}\n")
    async with asker(tmp_path, root) as asked:
        project, navigation = asked.project, asked.project.navigation
        await project.fresh()
        put, words = [await project.find_one(name, "Box.java") for name in ("Box/put", "Box/WORDS/put")]
        big = await project.find_one("Big/put", "Big.java")
        asked_about: list[str] = []

        async def implementations(hit: Hit) -> tuple[list[Hit], int, str | None]:
            asked_about.append(hit.name_path)
            return ([words, big] if hit.name_path == "Box/put" else []), 0, None

        monkeypatch.setattr(navigation, "implementations", implementations)
        proposal = WorkspaceEdit({root / one.path: [Replacement(name_range(one), "add")] for one in (big, put)})
        for begun in (put, big):
            asked_about.clear()
            left_out = await overriding(navigation, begun, proposal)
            assert [one.name_path for one in left_out] == ["Box/WORDS/put"], begun.name_path
            assert asked_about == ["Box/put"]


async def test_methods_are_found_that_override_one_with_types_that_their_class_gives_for_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jdtls proposes none of them and lists none as an implementation, but says of each what it overrides. Its answers,
    as they were seen, stand for it."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Keeper.java").write_text("class Keeper<T extends Animal> {\n  void feed(T one) { feed(one); }\n}\n")
    (root / "Dogs.java").write_text(
        "class Dogs extends Keeper<Animal.Dog> {\n  void feed(Animal.Dog one) {}\n  void feed(String one) {}\n"
        "  Keeper<Animal> mixed() {\n    return new Keeper<Animal>() {\n      void feed(Animal one) {}\n    };\n"
        "  }\n}\n"
    )
    (root / "Other.java").write_text("class Other {\n  void feed(Animal.Dog one) {}\n}\n")
    async with asker(tmp_path, root) as asked:
        project, navigation = asked.project, asked.project.navigation
        await project.fresh()
        keeper = await project.find_one("Keeper/feed", "Keeper.java")
        named = ["Dogs/feed[0]", "Dogs/feed[1]", "Dogs/mixed/feed"]
        dogs, overload, mixed = [await project.find_one(name, "Dogs.java") for name in named]
        overriding_it = [(one.path, one.symbol.name_position) for one in (dogs, mixed)]
        about: list[PlaceInCode] = []

        async def implementations(_: Hit) -> tuple[list[Hit], int, str | None]:
            return [], 0, None

        async def declared(places: Sequence[PlaceInCode], answers: Answers) -> None:
            about.extend(places)
            base = [Location(root / "Keeper.java", name_range(keeper))]
            answers |= {one: base if (one.path, one.range.start) in overriding_it else [] for one in places}

        monkeypatch.setattr(navigation, "implementations", implementations)
        monkeypatch.setattr(navigation.declarations, "ask", declared)
        proposal = WorkspaceEdit({root / "Keeper.java": [Replacement(name_range(keeper), "serve")]})
        for begun in (keeper, dogs):
            about.clear()
            found = await overriding(navigation, begun, proposal)
            assert {one.name_path for one in (begun, *found)} >= {"Dogs/feed[0]", "Dogs/mixed/feed"}
            assert {one.name_path for one in found} <= {"Dogs/feed[0]", "Dogs/mixed/feed"}
            asked = {PlaceInCode(one.path, name_range(one)) for one in (dogs, overload, mixed) if one is not begun}
            assert (set(about), len(about)) == (asked, len(asked))

        async def silent(places: Sequence[PlaceInCode], answers: Answers) -> None:
            answers |= {one: [] for one in places}
            answers[PlaceInCode("Dogs.java", name_range(overload))] = None

        monkeypatch.setattr(navigation.declarations, "ask", silent)
        with pytest.raises(EditRefused, match=r"did not say what .Dogs/feed\[1\] in Dogs.java:2. overrides"):
            await overriding(navigation, keeper, proposal)


async def test_what_many_methods_override_is_asked_until_the_time_ends_and_remembered_for_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jdtls takes up to 100 ms for each, and a name may have thousands: each call gets further. A server that answers
    for some files and then for no more stands for it."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Keeper.java").write_text("class Keeper<T> {\n  void feed(T one) {}\n}\n")
    for at in range(6):
        text = f"class Dogs{at} extends Keeper<Dog> {{\n  void feed(Dog one) {{}}\n  void feed(String one) {{}}\n}}\n"
        (root / f"Dogs{at}.java").write_text(text)
    async with asker(tmp_path, root) as asked:
        project, navigation = asked.project, asked.project.navigation
        await project.fresh()
        keeper = await project.find_one("Keeper/feed", "Keeper.java")
        about: list[str] = []
        left = 4

        class Server:
            async def ready(self) -> None: ...

            async def definitions(
                self, path: Path, positions: Sequence[Position], feature: str
            ) -> list[list[Location] | None]:
                nonlocal left
                assert feature == "declaration"
                left -= 1
                if left < 0:
                    await anyio.sleep_forever()
                about.append(path.name)
                base = [Location(root / "Keeper.java", name_range(keeper))]
                return [base if at.line0 == 1 else [] for at in positions]

        async def ask(_: str, question: Callable[[Server], Awaitable[Any]]) -> Any:
            return await question(Server())

        async def implementations(_: Hit) -> tuple[list[Hit], int, str | None]:
            return [], 0, None

        monkeypatch.setattr("serena_central.projects.refactoring.overriding.OVERRIDDEN_S", 2.0)
        monkeypatch.setattr(navigation, "implementations", implementations)
        monkeypatch.setattr(project.languages, "ask", ask)
        proposal = WorkspaceEdit({root / "Keeper.java": [Replacement(name_range(keeper), "serve")]})
        await navigation.possible.kin_called(keeper, "feed")  # all is read before the time begins
        with pytest.raises(EditRefused, match=r"8 of 12 methods of that name were examined\. Call again to resume"):
            await overriding(navigation, keeper, proposal)
        left = 6
        found = await overriding(navigation, keeper, proposal)
        assert sorted(one.name_path for one in found) == [f"Dogs{at}/feed[0]" for at in range(6)]
        assert sorted(about) == [f"Dogs{at}.java" for at in range(6)]


async def test_components_of_records_and_methods_with_their_names_are_renamed_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jdtls renames each without the others. It alone tells components: they are written out here."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Priced.java").write_text("interface Priced {\n  int price();\n  int price(int n);\n}\n")
    (root / "Item.java").write_text(
        "record Item(int price, int tax) implements Priced {\n  public int price(int n) { return n; }\n"
        "  public int tax() { return tax; }\n}\n"
    )
    async with asker(tmp_path, root) as asked:
        project, navigation = asked.project, asked.project.navigation
        await project.fresh()
        item = await project.find_one("Item", "Item.java")
        price = Symbol("price", SymbolKind.FIELD, 0, None, 0, 12, 0, 21, 0, 16)
        tax = Symbol("tax", SymbolKind.FIELD, 0, 0, 0, 23, 0, 30, 0, 27)
        accessor = Symbol("tax", SymbolKind.METHOD, 0, 1, 2, 2, 2, 34, 2, 13)
        told = FileSymbols((item.symbol, price, tax, accessor))
        components = [Hit("Item.java", told, place) for place in (1, 2)]

        async def bound(hit: Hit) -> list[str]:
            found = await of_same_accessor(navigation, hit, Rename({}, []))
            return [f"{one.path}:{one.symbol.name_line}" for one in found]

        assert await bound(components[0]) == ["Priced.java:1"]
        assert await bound(components[1]) == ["Item.java:2"]
        assert await bound(Hit("Item.java", told, 3)) == ["Item.java:0"]

        async def kin_called(_: Hit, name: str) -> list[Hit]:
            return [one for one in components if one.symbol.name == name]

        monkeypatch.setattr(navigation.possible, "kin_called", kin_called)
        plain, overload = [await project.find_one(f"Priced/price[{at}]", "Priced.java") for at in (0, 1)]
        assert await bound(plain) == ["Item.java:0"]
        assert await bound(overload) == []


async def test_methods_that_a_class_inherits_as_one_are_not_renamed_apart(tmp_path: Path) -> None:
    """jdtls sees it where their parameters have the same types as they are written, and not where a class gives one."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "Filter.java").write_text("interface Filter<X> {\n  boolean accept(X one);\n  int size();\n}\n")
    (root / "Fine.java").write_text("interface Fine<X> extends Filter<X> {\n}\n")
    (root / "Words.java").write_text(
        "class Words {\n  public boolean accept(String one) { return true; }\n"
        "  public boolean accept(String one, Map<Integer, String> more) { return true; }\n"
        "  public static int size() { return 1; }\n}\n"
    )
    (root / "More.java").write_text(
        "class More extends Words {\n  public boolean accept(Long one) { return true; }\n}\n"
    )
    (root / "Met.java").write_text("class Met extends More implements Fine<String> {\n}\n")
    (root / "Other.java").write_text("class Other<T> {\n  public boolean accept(T one) { return true; }\n}\n")
    async with asker(tmp_path, root) as asked:
        project = asked.project
        await project.fresh()
        found: dict[str, list[str]] = {}
        for name, path in [
            ("Filter/accept", "Filter.java"),
            ("Filter/size", "Filter.java"),
            ("Words/accept[0]", "Words.java"),
            ("Words/accept[1]", "Words.java"),
            ("Words/size", "Words.java"),
            ("Other/accept", "Other.java"),
        ]:
            hit = await project.find_one(name, path)
            rename = Rename({path: [TextEdit(name_range(hit), "admit")]}, [])
            found[name] = sorted(one.name_path for one in await of_joined(project.navigation, hit, rename))
        assert found == {
            "Filter/accept": ["More/accept", "Words/accept[0]"],
            "Filter/size": [],
            "Words/accept[0]": ["Filter/accept"],
            "Words/accept[1]": [],
            "Words/size": [],
            "Other/accept": [],
        }


async def test_places_that_a_rename_proposes_and_that_lead_to_another_method_keep_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """jdtls proposes calls of a method of another class that takes the same parameters. Its answers, as they were seen,
    stand for it."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "A.java").write_text("class A {\n  static void make(int n) {}\n}\n")
    (root / "B.java").write_text("class B {\n  static void make(int n) { make(1); A.make(2); }\n}\n")
    async with asker(tmp_path, root) as asked:
        project, navigation = asked.project, asked.project.navigation
        await project.fresh()
        mine, other = [await project.find_one("make", path) for path in ("A.java", "B.java")]
        calls = [Range(Position(1, at), Position(1, at + 4)) for at in (28, 39)]

        async def leads(places: Sequence[PlaceInCode]) -> dict[PlaceInCode, list[Location]]:
            to = {(one.path, name_range(one)): one for one in (mine, other)} | {("B.java", calls[0]): other}
            return {place: [Location(root / to[place].path, name_range(to[place]))] for place in places}

        monkeypatch.setattr(navigation.possible, "leads", leads)
        edits = {"A.java": [TextEdit(name_range(mine), "build")], "B.java": [TextEdit(one, "build") for one in calls]}
        found = await of_others(navigation, mine, Rename(edits, []), Uses({"B.java": [calls[1]]}))
        assert found == [PlaceInCode("B.java", calls[0])]
