"""What an analysis run says of a part of a project: its graph, who uses what there, and every single use."""

from serena_central.analysis.analysis_run import (
    GraphRun,
    Neighbours,
    Reference,
    neighbours,
    reach_of,
    reaches,
    references,
    whole_graph,
)
from serena_central.analysis.collection import Definition
from serena_central.analysis.graph import graph_of
from serena_central.analysis.module_graph import Area
from serena_central.analysis.report import report_of

FILES = ["main.py", "shop/cart.py", "shop/line.py", "shop/old/cart.py"]

ANALYSIS = GraphRun(
    at=1.0,
    fingerprints={},
    areas=[],
    notes=[],
    definitions=[
        Definition("shop/line.py", "Line", 5, 0, {"shop/cart.py": [(3, 4), (1, 0)], "shop/line.py": [(9, 0)]}),
        Definition("shop/cart.py", "Cart/total", 6, 0, {"main.py": [(2, 1)], "shop/old/cart.py": [(7, 7)]}),
    ],
    files=FILES,
)


def test_a_reach_is_a_file_a_folder_with_all_in_it_or_the_files_right_in_it() -> None:
    assert [path for path in FILES if reaches("shop/cart.py", path)] == ["shop/cart.py"]
    assert [path for path in FILES if reaches("shop", path)] == FILES[1:]
    assert [path for path in FILES if reaches("shop/.", path)] == FILES[1:3]
    assert [path for path in FILES if reaches("./.", path)] == FILES[:1]
    assert [path for path in FILES if reaches("", path)] == FILES
    assert not reaches("shop", "shopping.py")


def test_a_node_reaches_what_its_granularity_makes_of_it() -> None:
    areas = [Area("shop", "modules/shop")]
    assert reach_of("shop", "module", areas) == "modules/shop"
    assert reach_of("lib", "module", areas) == "lib"
    assert reach_of("shop", "folder", []) == "shop/."
    assert reach_of("shop", "folder", [], folded=True) == "shop"
    assert reach_of("a.py", "file", []) == "a.py"


def test_the_graph_of_a_folder_is_about_what_lies_in_it() -> None:
    whole = whole_graph(ANALYSIS, "file", "shop").graph
    assert [(edge.source, edge.target, edge.count) for edge in whole.edges] == [
        ("shop/cart.py", "shop/line.py", 2),
        ("shop/old/cart.py", "shop/cart.py", 1),
    ]
    assert list(whole.files) == FILES[1:]


def test_the_uses_of_an_edge_are_told_by_file_and_line() -> None:
    assert references(ANALYSIS, "shop", "shop/line.py") == [
        Reference("shop/cart.py", 1, 0, "Line", "shop/line.py"),
        Reference("shop/cart.py", 3, 4, "Line", "shop/line.py"),
    ]
    assert [one.path for one in references(ANALYSIS, "", "")] == ["main.py", *["shop/cart.py"] * 2, "shop/old/cart.py"]


def test_neighbours_are_those_outside() -> None:
    assert neighbours(ANALYSIS, "shop") == Neighbours({"main.py": 1}, {})
    assert neighbours(ANALYSIS, "shop/cart.py") == Neighbours(
        {"main.py": 1, "shop/old/cart.py": 1}, {"shop/line.py": 2}
    )


def test_of_a_folder_with_too_many_files_those_with_the_most_uses_are_drawn() -> None:
    files = [f"lib/{name}.py" for name in "abcdef"]
    uses = [Definition("lib/a.py", "A", 5, 0, {"lib/b.py": [(1, 0), (2, 0)], "lib/c.py": [(1, 0)]})]
    graph = graph_of(uses, files, "file", node_of=str)
    cut = report_of("shop", "", graph, max_nodes=3, notes=["odd"])
    assert cut.drawn.files == {"lib/a.py": 1, "lib/b.py": 1, "lib/c.py": 1}
    assert [edge.count for edge in cut.drawn.edges] == [2, 1]
    assert cut.notes[0] == "Omitted from the drawing: 3 nodes with the fewest references."
    assert cut.nodes == 6
    assert report_of("shop", "", graph, max_nodes=6, notes=["odd"]).notes == ["odd"]
    assert list(report_of("shop", "", graph, max_nodes=3, notes=[], shut=["lib"]).drawn.files) == ["lib"]
