"""Equal roots, servers and settings share a server; anything else does not."""

from pathlib import Path
from typing import Any

from serena_central.lsp.catalogue import ServerSpec
from serena_central.pool.key import WantedServer
from tests.support.fakes import FAKE_SPEC, text_of


def wanted(root: str = "/p", spec: ServerSpec = FAKE_SPEC, **settings: Any) -> WantedServer:
    return WantedServer(spec, Path(root), settings, text_of, None)


def test_the_order_of_settings_does_not_matter() -> None:
    assert wanted(a={"x": 1, "y": 2}, b=3).key == wanted(b=3, a={"y": 2, "x": 1}).key


def test_other_settings_or_another_root_mean_another_server() -> None:
    keys = {wanted().key, wanted(a=1).key, wanted(a=2).key, wanted("/q").key}
    assert len(keys) == 4


def test_a_key_is_computed_once() -> None:
    asked = wanted(a=1)
    assert asked.key is asked.key
    assert (asked.key.root, asked.key.server) == (Path("/p"), "fake")
