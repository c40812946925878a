import os
import shutil
import subprocess

import pytest

from serena_central.lsp.catalogue import catalogue
from serena_central.lsp.catalogue.spec import Runtime
from serena_central.lsp.memory_limits import jobs, limiting


@pytest.mark.parametrize(
    ("runtime", "variables"),
    [
        ("", {}),
        ("go", {"GOMEMLIMIT": "3000MiB"}),
        ("node", {"NODE_OPTIONS": "--max-old-space-size=3000"}),
        ("jvm", {"JAVA_TOOL_OPTIONS": "-Xmx3000m"}),
    ],
)
def test_each_runtime_is_told_by_its_own_variable(runtime: Runtime, variables: dict[str, str]) -> None:
    assert limiting(runtime, 3000, {}) == variables


def test_what_the_user_has_set_counts_for_more() -> None:
    assert limiting("go", 3000, {"GOMEMLIMIT": "off"}) == {}
    node = {"NODE_OPTIONS": "--require ./pnp.cjs --max-old-space-size=9000"}
    assert limiting("node", 3000, node) == {"NODE_OPTIONS": f"--max-old-space-size=3000 {node['NODE_OPTIONS']}"}


def test_nodes_limit_is_never_raised_and_the_jvms_never_below_what_scripts_start_with() -> None:
    assert limiting("node", 16_000, {}) == {"NODE_OPTIONS": "--max-old-space-size=4096"}
    assert limiting("jvm", 1000, {}) == {"JAVA_TOOL_OPTIONS": "-Xmx1024m"}


_HEAP = "console.log(require('v8').getHeapStatistics().heap_size_limit / 1048576)"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.parametrize(("users", "most"), [({}, 1100), ({"NODE_OPTIONS": "--max-old-space-size=2000"}, 2100)])
def test_node_keeps_to_the_limit_and_to_the_users_instead(users: dict[str, str], most: int) -> None:
    environment = {"PATH": os.environ["PATH"], **users}
    told = environment | limiting("node", 1000, environment)
    said = subprocess.check_output(["node", "-e", _HEAP], env=told, text=True)
    assert most - 150 < float(said) < most


def test_servers_of_npm_that_run_on_node_are_told_a_limit() -> None:
    native = {"buf", "deno", "devsense-php-ls", "jdtls", "typescript"}
    for spec in catalogue().servers.values():
        if any(recipe.via == "npm" for recipe in spec.install):
            assert (spec.launch.runtime == "node") == (spec.name not in native), spec.name
    assert [catalogue().server(name).launch.runtime for name in ("gopls", "typescript", "jdtls")] == ["go", "go", "jvm"]


def test_jobs_are_as_many_as_there_are_processors_and_memory_for() -> None:
    assert [jobs(8, 16_000), jobs(64, 2000), jobs(64, 100)] == [8, 8, 1]
