"""How a language server is told how much memory it may use: by the variable that its runtime reads.

A variable that the user has set is left alone, or counts for more. What no runtime limits (ty, rust-analyzer, clangd)
is bounded by the pool alone, which stops servers.
"""

from collections.abc import Mapping

from serena_central.lsp.catalogue.spec import Runtime

NODE_MB = 4096
"""Node's own limit on a machine of 16 GB and more. What a user needs beyond it, NODE_OPTIONS says."""

JVM_LEAST_MB = 1024
"""jdtls' script starts with a heap of 1 GB, and a limit below that is an error."""

JOB_MB = 250
"""What one job of clangd may take: the syntax tree of a file with many headers."""


def limiting(runtime: Runtime, memory_mb: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that keep a process and its children to so much memory, laid over `environment`.

    Go's limit is soft: nearing it, it collects more often. Node and the JVM end with an error beyond theirs.
    """
    match runtime:
        case "go":
            name, limit = "GOMEMLIMIT", f"{memory_mb}MiB"
            return {} if name in environment else {name: limit}
        case "node":
            name, limit = "NODE_OPTIONS", f"--max-old-space-size={min(memory_mb, NODE_MB)}"
        case "jvm":
            name, limit = "JAVA_TOOL_OPTIONS", f"-Xmx{max(memory_mb, JVM_LEAST_MB)}m"
        case "":
            return {}
    # The last one counts: the user's.
    return {name: f"{limit} {environment.get(name, '')}".rstrip()}


def jobs(cpus: int, memory_mb: int) -> int:
    """How many jobs a server may have at once, that has so many CPUs and so much memory; one at least."""
    return max(1, min(cpus, memory_mb // JOB_MB))
