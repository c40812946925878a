"""Which files of Go are for other operating systems alone, by their names and build constraints."""

import pytest

from serena_central.lsp import go_platforms
from serena_central.lsp.go_platforms import BUILD_LINES, other_platform


@pytest.fixture(autouse=True)
def _on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    others = frozenset({"windows", "darwin", "js"})
    monkeypatch.setattr(go_platforms, "_OTHERS", others)
    monkeypatch.setattr(go_platforms, "_FOR_OTHERS", others | {"!linux"})


@pytest.mark.parametrize(
    ("path", "text", "platform"),
    [
        ("cm/manager.go", "package cm\n", None),
        ("cm/manager_linux.go", "package cm\n", None),
        ("cm/manager_windows.go", "package cm\n", "windows"),
        ("cm/manager_windows_test.go", "package cm\n", "windows"),
        ("cm/manager_darwin_arm64.go", "package cm\n", "darwin"),
        ("cm/windows.go", "package cm\n", None),
        ("cm/js_test.go", "package cm\n", None),
        ("cm/manager.go", "//go:build !linux\n\npackage cm\n", "!linux"),
        ("cm/manager.go", "// Text.\n\n//go:build !linux && !windows\n\npackage cm\n", "!linux && !windows"),
        ("cm/manager.go", "//go:build windows\r\n\r\npackage cm\r\n", "windows"),
        ("cm/manager.go", "//go:build linux\n\npackage cm\n", None),
        ("cm/manager.go", "//go:build linux || windows\n\npackage cm\n", None),
        ("cm/manager.go", "//go:build !windows\n\npackage cm\n", None),
    ],
)
def test_what_is_plain_is_seen_and_the_rest_taken_for_this_platform(path: str, text: str, platform: str | None) -> None:
    assert other_platform(path, BUILD_LINES.findall(text.encode())) == platform
