"""`serve --cluster local`: a cluster of one machine, which lasts as long as the server."""

import json
import signal
from pathlib import Path

import psutil
import pytest

from tests.cluster.conftest import running_cluster

pytestmark = pytest.mark.cluster


def test_a_local_cluster_answers_edits_and_leaves_nothing(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        root = cluster.project("shop")
        refused = cluster.command("serve", "--port", "0", "--cluster", "local")
        assert refused.returncode == 2, refused.stderr
        assert "--project" in refused.stderr
        cluster.front("local", "--project", str(root))
        found = json.loads(cluster.call("find_symbol", name_path_pattern="Cart", include_body=True, project="shop"))
        assert found[0]["body"].startswith("class Cart")
        edit = {"relative_path": "cart.py", "needle": "return 1", "repl": "return 2", "mode": "literal"}
        json.loads(cluster.call("replace_content", **edit, project="shop"))
        assert "return 2" in (root / "cart.py").read_text()
        below = cluster.below()
        assert any("HostActor" in " ".join(process.cmdline()) for process in below)
        assert cluster.listening().keys() == {"127.0.0.1"}
        front = cluster.processes["front"]
        front.terminate()
        assert front.wait(60) == 128 + signal.SIGTERM, (tmp_path / "front.log").read_text()[-2000:]
        _, left = psutil.wait_procs(below, 15)
        assert left == []
