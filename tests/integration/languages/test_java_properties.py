"""Accessors of Java that Kotlin and Groovy call as properties are used, although their names stand nowhere.

The Java file is read by syntax, without its language server: what is asked here is about the other files.
"""

from pathlib import Path

import pytest

from serena_central.analysis.other_language_mentions import used_as_property
from tests.support.languages import asker

pytestmark = pytest.mark.anyio

FILES = {
    "src/Box.java": """\
class Box {
  int getSize() { return 1; }
  void setColour(int colour) {}
  boolean isOpen() { return true; }
  String getURL() { return ""; }
  int getWeight() { return 1; }
  int getter() { return 1; }
}
""",
    "src/Use.kt": "fun use(box: Box) = box.size + box.url + weight()\n",
    "src/Use.groovy": "box.colour = 3; box.open\n",
    "build.gradle": "weight = 1\n",
}


@pytest.mark.parametrize(
    ("name", "file", "written"),
    [
        ("getSize", "src/Use.kt", "size"),
        ("getURL", "src/Use.kt", "url"),
        ("setColour", "src/Use.groovy", "colour"),
        ("isOpen", "src/Use.groovy", "open"),
        ("getWeight", None, None),
        ("getter", None, None),
    ],
)
async def test_an_accessor_is_used_where_its_property_is(
    name: str, file: str | None, written: str | None, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    async with asker(tmp_path, root) as asked:
        project = asked.project
        await project.fresh()
        hit = await project.find_one(f"Box/{name}", "src/Box.java")
        reason = await used_as_property(project, hit)
    assert reason == (f"{file} holds {written}, and may call it as a property of that name" if file else None)


async def test_a_type_with_an_everyday_name_is_used_where_kotlin_names_it(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    files = {"Box.java": "class Box {}\n", "Lid.java": "class Lid {}\n", "Use.kt": "fun use(box: Box) = box\n"}
    for path, text in (files | {"notes.txt": "The Lid of the Box.\n"}).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    async with asker(tmp_path, root) as asked:
        project, validation = asked.project, asked.central.central.validation
        await project.fresh()
        said = {
            name: " ".join(await validation.objections(project, await project.find_one(name, f"{name}.java")))
            for name in ("Box", "Lid")
        }
    assert "Its name occurs in 'Use.kt', in another language, and may mean this symbol." in said["Box"]
    assert "in another language" not in said["Lid"]


async def test_a_file_that_is_called_by_a_type_names_it(tmp_path: Path) -> None:
    root, services = tmp_path / "shop", "META-INF/services/shop.plugin.Plugin"
    for path, text in {"Plugin.java": "interface Plugin {}\n", services: "shop.Impl\n", "Plugins.txt": "\n"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    async with asker(tmp_path, root) as asked:
        await asked.project.fresh()
        hit = await asked.project.find_one("Plugin", "Plugin.java")
        assert await asked.project.navigation.possible.files_elsewhere(hit) == [services]
