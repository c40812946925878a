"""What graphs look like, whatever their names hold."""

import json
from xml.etree import ElementTree

import pytest

from serena_central.analysis.collection import Definition
from serena_central.analysis.graph import Graph, graph_of
from serena_central.analysis.render.formats import RENDERERS
from serena_central.analysis.report import GraphReport, report_of

ODD = 'a "b" <c>&|`\n\\.py'


def report(*, max_nodes: int = 10) -> GraphReport:
    definitions = [Definition(ODD, "x", 12, 0, {"d.py": [(4, 1)]}), Definition("d.py", "y", 12, 0, {ODD: [(0, 0)]})]
    return report_of(
        "shop", "", graph_of(definitions, [ODD, "d.py"], "file", node_of=str), max_nodes=max_nodes, notes=["odd"]
    )


def test_mermaid_has_no_character_of_a_name_that_could_break_it() -> None:
    drawn = RENDERERS["mermaid"](report())
    assert 'n0["a #34;b#34; #60;c#62;#38;|#96;#10;#92;.py"]' in drawn
    assert 'n1 -->|"1"| n0' in drawn
    assert "class n0,n1 cycle" in drawn


def test_dot_quotes_names() -> None:
    assert '"d.py" -> "a \\"b\\" <c>&|`\\n\\\\.py" [label=1, color=red];' in RENDERERS["dot"](report())


def test_svg_is_a_document_whose_nodes_and_edges_say_what_they_are() -> None:
    tree = ElementTree.fromstring(RENDERERS["svg"](report()))
    groups = [part for part in tree.iter() if part.get("data-node")]
    assert [part.get("class") for part in groups] == ["node cycle", "node cycle"]
    assert {(part.get("data-source"), part.get("data-target")) for part in tree.iter() if part.get("data-source")} == {
        ("d.py", ODD.replace("\n", "\ufffd")),
        (ODD.replace("\n", "\ufffd"), "d.py"),
    }


def test_an_empty_graph_is_drawn() -> None:
    empty = report_of("shop", "", Graph("file", {}, []), max_nodes=5, notes=[])
    assert all(render(empty) for render in RENDERERS.values())
    assert ElementTree.fromstring(RENDERERS["svg"](empty)).get("width") == "20"


def test_markdown_names_cycles_with_the_uses_that_make_them() -> None:
    page = RENDERERS["markdown"](report())
    assert "# Dependencies of shop\n\n2 nodes (file), 2 references, 1 cycle, 1 layer." in page
    assert '- `d.py` → `a "b" <c>&¦´\\n\\.py`: 1 reference, `x` at `d.py:5`' in page
    assert "\n> odd\n" in page


@pytest.mark.parametrize("key", ["project", "nodes", "analysis", "drawn", "notes"])
def test_json_is_the_whole_report(key: str) -> None:
    assert key in json.loads(RENDERERS["json"](report()))
