"""Where a language server runs for a file: its root, the folder of it that the file belongs to, its environment."""

from serena_central.lsp.roots.place import ServerRoot
from serena_central.lsp.roots.resolve import server_root

__all__ = ["ServerRoot", "server_root"]
