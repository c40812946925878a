"""By which links of a workspace a file of one of its packages is reached."""

from pathlib import Path

import pytest

from serena_central.lsp.links import Links


def package(root: Path, folder: str, manifest: str) -> Path:
    (root / folder / "src").mkdir(parents=True)
    (root / folder / "package.json").write_text(manifest)
    return root / folder


def link(name: Path, target: Path) -> None:
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(target)


def test_a_file_has_the_names_of_the_links_above_those_that_import_it(tmp_path: Path) -> None:
    ui = package(tmp_path, "ui", '{"name": "@acme/ui"}')
    web = package(tmp_path, "web", '{"name": "@acme/web"}')
    link(tmp_path / "node_modules/@acme/ui", ui)
    link(web / "node_modules/@acme/ui", ui)
    link(tmp_path / "far/node_modules/@acme/ui", ui)
    links = Links([web / "src"])
    expected = {web / "node_modules/@acme/ui/src/gone.ts", tmp_path / "node_modules/@acme/ui/src/gone.ts"}
    assert set(links.names(ui / "src/gone.ts")) == expected
    assert links.names(web / "src/page.ts") == []


@pytest.mark.parametrize("manifest", ['{"name": "../ui"}', '{"name": "/ui"}', '{"name": 1}', "[]", "{", "{}"])
def test_a_package_without_a_usable_name_has_no_links(tmp_path: Path, manifest: str) -> None:
    ui = package(tmp_path, "ui", manifest)
    link(tmp_path / "node_modules/ui", ui)
    assert Links([tmp_path]).names(ui / "a.ts") == []
    assert Links([tmp_path]).names(tmp_path / "a.ts") == []


def test_a_link_that_leads_to_another_package_does_not_count(tmp_path: Path) -> None:
    ui = package(tmp_path, "ui", '{"name": "ui"}')
    link(tmp_path / "node_modules/ui", package(tmp_path, "other", '{"name": "ui"}'))
    assert Links([tmp_path]).names(ui / "a.ts") == []
