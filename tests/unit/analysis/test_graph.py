"""A graph adds uses up, names cycles, and orders what is left."""

from serena_central.analysis.collection import Definition
from serena_central.analysis.fold import folded
from serena_central.analysis.graph import Cycle, Graph, analyse, folder_of, graph_of, merged


def defined(path: str, name: str, **uses: int) -> Definition:
    """A symbol used so often in files whose names are written with `_` for `/` and without ending."""
    places = {f"{user.replace('_', '/')}.py": [(line, 0) for line in range(count)] for user, count in uses.items()}
    return Definition(path, name, 12, 0, places)


FILES = ["app/main.py", "app/views.py", "core/text.py", "core/tree.py"]
DEFINITIONS = [
    defined("core/text.py", "Text", app_main=2, core_tree=1),
    defined("core/tree.py", "Tree", core_text=3, app_views=1),
    defined("app/views.py", "show", app_main=4, elsewhere=9, app_views=5),
]


def file_graph() -> Graph:
    return graph_of(DEFINITIONS, FILES, "file", node_of=lambda path: path)


def counts(graph: Graph) -> dict[tuple[str, str], int]:
    return {(edge.source, edge.target): edge.count for edge in graph.edges}


def test_edges_lead_from_the_user_and_count_uses() -> None:
    assert counts(file_graph()) == {
        ("app/main.py", "app/views.py"): 4,
        ("core/text.py", "core/tree.py"): 3,
        ("app/main.py", "core/text.py"): 2,
        ("app/views.py", "core/tree.py"): 1,
        ("core/tree.py", "core/text.py"): 1,
    }


def test_possible_references_are_no_cycle_no_layer_and_in_no_ranking() -> None:
    maybe = Definition(
        "app/main.py", "run", 12, 0, possible={"core/tree.py": [(0, 0), (1, 0)], "core/text.py": [(2, 0)]}
    )
    graph = graph_of([*DEFINITIONS, maybe], FILES, "file", node_of=lambda path: path)
    assert {(edge.source, edge.target): (edge.count, edge.possible) for edge in graph.edges if edge.possible} == {
        ("core/tree.py", "app/main.py"): (0, 2),
        ("core/text.py", "app/main.py"): (0, 1),
    }
    assert all(sample.possible for edge in graph.edges if not edge.count for sample in edge.samples)
    assert analyse(graph) == analyse(file_graph())
    whole = merged(graph, folder_of)
    assert {(edge.source, edge.target): (edge.count, edge.possible) for edge in whole.edges} == {
        ("app", "core"): (3, 0),
        ("core", "app"): (0, 3),
    }


def test_files_of_a_folder_are_one_node_and_its_inner_uses_no_edge() -> None:
    graph = graph_of(DEFINITIONS, FILES, "folder", node_of=folder_of)
    assert counts(graph) == {("app", "core"): 3}
    assert graph.files == {"app": 2, "core": 2}


def test_nodes_that_need_each_other_are_a_cycle_with_the_uses_that_make_it() -> None:
    found = analyse(file_graph())
    (cycle,) = found.cycles
    assert (cycle.name, cycle.nodes) == ("core/text.py ↔ core/tree.py", ["core/text.py", "core/tree.py"])
    assert [(edge.source, edge.samples[0].name_path) for edge in cycle.edges] == [
        ("core/text.py", "Tree"),
        ("core/tree.py", "Text"),
    ]


def test_layers_rise_from_what_depends_on_nothing() -> None:
    assert analyse(file_graph()).layers == [["core/text.py", "core/tree.py"], ["app/views.py"], ["app/main.py"]]


def test_rankings_count_neighbours_first() -> None:
    found = analyse(file_graph())
    assert [(one.node, one.nodes, one.uses) for one in found.most_used[:2]] == [
        ("core/tree.py", 2, 4),
        ("core/text.py", 2, 3),
    ]
    assert found.most_using[0].node == "app/main.py"


def test_a_large_cycle_is_named_after_what_most_of_it_uses() -> None:
    ring = [defined(f"{name}.py", name, **{user: 1 + (name == "c")}) for name, user in zip("abcd", "bcda", strict=True)]
    cycle = analyse(graph_of(ring, [f"{name}.py" for name in "abcd"], "file", node_of=str)).cycles[0]
    assert isinstance(cycle, Cycle)
    assert cycle.name == "4 around c.py"


def test_symbols_are_told_apart_by_what_holds_the_use() -> None:
    graph = graph_of(DEFINITIONS[:1], FILES, "symbol", node_of=str, holder=lambda path, place: f"{path}:f{place[0]}")
    assert counts(graph) == {
        ("app/main.py:f0", "core/text.py:Text"): 1,
        ("app/main.py:f1", "core/text.py:Text"): 1,
        ("core/tree.py:f0", "core/text.py:Text"): 1,
    }


def test_a_graph_that_can_be_read_is_not_folded() -> None:
    graph = file_graph()
    assert folded(graph, 4) == (graph, None, frozenset())


def test_what_lies_at_the_top_and_large_folders_are_told_apart_longest() -> None:
    files = ["a.py", "lib/b.py", "lib/deep/c.py", "lib/deep/d.py", "lib/deep/e.py", "lib/more/f.py", "lib/more/g.py"]
    graph = graph_of([], files, "file", node_of=str)
    small, how, folders = folded(graph, 6)
    assert folders == {"lib/more"}
    assert small.files == {
        "a.py": 1,
        "lib/b.py": 1,
        "lib/deep/c.py": 1,
        "lib/deep/d.py": 1,
        "lib/deep/e.py": 1,
        "lib/more": 2,
    }
    assert how == "7 nodes were folded to 6: files into their folders where needed."
    assert folded(graph, 2).graph.files == {"a.py": 1, "lib": 6}


def test_folding_adds_edges_up() -> None:
    small = folded(file_graph(), 3).graph
    assert counts(small) == {
        ("app/main.py", "app/views.py"): 4,
        ("app/main.py", "core"): 2,
        ("app/views.py", "core"): 1,
    }


def test_symbols_are_folded_into_their_files_first() -> None:
    graph = Graph("symbol", {"a.py:x": 1, "a.py:y": 1, "b/c.py:z": 1}, [])
    assert folded(graph, 2).graph.files == {"a.py": 2, "b/c.py": 1}


def test_what_people_open_stays_open_and_what_they_shut_is_folded() -> None:
    files = ["a.py", "lib/b.py", "lib/deep/c.py", "lib/deep/d.py", "lib/deep/e.py", "lib/more/f.py", "lib/more/g.py"]
    graph = graph_of([], files, "file", node_of=str)
    opened = folded(graph, 4, opened=["lib/more"])
    assert opened.graph.files == {"a.py": 1, "lib/b.py": 1, "lib/deep": 3, "lib/more/f.py": 1, "lib/more/g.py": 1}
    shut = folded(graph, 60, shut=["lib/deep", "nowhere"])
    assert set(shut.graph.files) == {"a.py", "lib/b.py", "lib/deep", "lib/more/f.py", "lib/more/g.py"}
    assert folded(graph, 60, shut=["lib", "lib/deep"]).folders == {"lib"}
