"""Side languages: those that a project has so few files of that no language server is started, installed or waited for
on their account, before somebody asks about such a file.

The rule: files of the languages that one server answers for are counted together. The server is left alone while they
are fewer than a given share (`side_language_percent`) of all files that are searched for symbols. It never is if the
project's settings name one of its languages or the server, if no other server has more files, or once a file of it was
asked about by name. So with 1 % nothing is left alone in a project of up to 100 such files, however few a language has.
"""

from collections import Counter
from collections.abc import Collection


class SideLanguages:
    """Of one project. Servers and languages are known by their names."""

    def __init__(self, percent: float, named: Collection[str] = ()) -> None:
        """`named` are the servers that the project's settings name."""
        self._percent = percent
        self._named = frozenset(named)
        self._awake: set[str] = set()
        self._files: Counter[str] = Counter()
        self._all = 0
        self._most = 0

    def set(self, files: Counter[str]) -> None:
        """Takes how many files there are of each server, all in all."""
        self._files = Counter(files)
        self._all = files.total()
        self._most = max(files.values(), default=0)

    def count(self, server: str, by: int) -> None:
        """A file of a server came (1) or went (-1)."""
        self._files[server] += by
        self._all += by
        self._most = max(self._files.values())

    def is_side(self, server: str) -> bool:
        """Whether a server's languages have so few files, whether or not somebody has asked about one."""
        files = self._files[server]
        is_small = 0 < files * 100 < self._percent * self._all and files < self._most
        return is_small and server not in self._named

    def is_left_alone(self, server: str) -> bool:
        return server not in self._awake and self.is_side(server)

    def wake(self, server: str) -> bool:
        """Somebody asks about a file of this server by name; whether it was left alone until now."""
        left_alone = self.is_left_alone(server)
        self._awake.add(server)
        return left_alone

    def left_alone(self) -> dict[str, int]:
        """Servers that are, and how many files there are of each."""
        return {server: files for server, files in self._files.items() if self.is_left_alone(server)}

    def woken(self) -> list[str]:
        """Servers of side languages of which somebody has asked about a file."""
        return [server for server in self._files if server in self._awake and self.is_side(server)]

    def share(self, server: str) -> str:
        """`12 of 3,412 code files`"""
        return f"{self._files[server]:,} of {self._all:,} code files"
