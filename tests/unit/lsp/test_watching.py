"""Which folders a server says that it reads, by what it registers for."""

from pathlib import Path
from typing import Any

import pytest

from serena_central.lsp.answers import FileEvent
from serena_central.lsp.callbacks import METHOD, Watchers
from serena_central.lsp.catalogue.spec import Watching
from serena_central.lsp.conversion import uri_of
from serena_central.lsp.types import LspRegistration

ROOT = Path("/srv/orders")


def registered(*globs: Any) -> Watchers:
    watchers = Watchers(ROOT, Watching(globs=("**/*.go",)))
    watchers.register(LspRegistration("1", METHOD, {"watchers": [{"globPattern": glob} for glob in globs]}))
    return watchers


def below(folder: str, pattern: str = "**") -> dict[str, str]:
    return {"baseUri": uri_of(Path(folder)), "pattern": pattern}


@pytest.mark.parametrize(
    ("glob", "folders"),
    [
        (below("/srv/contracts"), {"/srv/contracts"}),
        (below("/srv/contracts", "src/**/*.rs"), {"/srv/contracts/src"}),
        (below("/srv/contracts", "*.rs"), set()),
        ("/srv/contracts/**/*", {"/srv/contracts"}),
        ("/srv/contracts/Cargo.toml", set()),
        ("**/*.{mod,work}", set()),
        ("/**", set()),
    ],
)
def test_a_glob_of_all_that_lies_below_a_folder_names_it(glob: Any, folders: set[str]) -> None:
    watchers = registered(glob)
    assert watchers.folders - {Path("/")} == {Path(folder) for folder in folders}
    watchers.unregister("1")
    assert not watchers.folders


def test_a_server_hears_of_its_kinds_of_files_wherever_they_lie() -> None:
    changes = [FileEvent(Path(path), "changed") for path in ("/srv/contracts/a.go", "/srv/contracts/a.py")]
    assert [event["uri"] for event in registered().events(changes)] == ["file:///srv/contracts/a.go"]
