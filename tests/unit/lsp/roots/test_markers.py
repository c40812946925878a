"""Markers are found by name as their patterns say."""

from fnmatch import fnmatchcase

import pytest

from serena_central.lsp.catalogue import catalogue
from serena_central.projects.languages.selection import MarkerNames


@pytest.mark.parametrize("server", sorted(catalogue().servers))
def test_a_server_s_markers_are_found_as_each_pattern_alone_would(server: str) -> None:
    markers = [marker for group in catalogue().servers[server].roots.markers for marker in group]
    found = MarkerNames.of(markers)
    for name in [
        "go.mod",
        "go.mod.bak",
        "x.csproj",
        "a\nb.sln",
        "Cargo.toml",
        "",
        *(one.replace("*", "x") for one in markers),
    ]:
        assert found.fit(name) == any(fnmatchcase(name, one.rpartition("/")[2]) for one in markers), name
