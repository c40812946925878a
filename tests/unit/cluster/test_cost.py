"""A single process pays nothing for clusters."""

import subprocess
import sys


def test_the_single_process_imports_nothing_of_a_cluster() -> None:
    code = (
        "import sys, serena_central.app, serena_central.tools.families, serena_central.cli.serve; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "serena_central.app.build" in loaded
    assert [name for name in loaded if name == "ray" or name.startswith(("ray.", "serena_central.cluster"))] == []
