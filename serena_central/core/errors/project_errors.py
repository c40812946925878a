"""Errors of what a call names: projects, paths, memories and symbols."""

from collections.abc import Sequence

from serena_central.core.errors.base import CANDIDATES_LISTED, SerenaCentralError, listed
from serena_central.core.quoting import escaped, framed, quoted

CONTENT_SHOWN = 20_000
"""Characters of a text that a refusal shows."""


class TrustRefused(SerenaCentralError):
    """A person's decision about a repository that can't be taken as it was meant; the message says why."""


class UnknownProject(SerenaCentralError):
    """No project fits what the call said. `known` holds names or roots of those that could be meant."""

    def __init__(self, asked: str | None, known: Sequence[str]) -> None:
        names = listed(known, "none yet")
        what = f"There is no project {quoted(asked)}." if asked else "This call does not name a project."
        super().__init__(f"{what} Known projects: {names}. Pass one of these names or an absolute path as project=.")
        self.asked = asked
        self.known = list(known)


class ProjectRefused(SerenaCentralError):
    """A folder that must not become a project."""


class OutsideAllowedRoots(ProjectRefused):
    """A folder outside of those that the setting allowed_roots allows."""

    def __init__(self, root: str, allowed: Sequence[str]) -> None:
        super().__init__(
            f"{quoted(root)} is outside the allowed project folders (allowed_roots): {', '.join(map(quoted, allowed))}."
        )


class PathError(SerenaCentralError):
    """A path in a call can't be used."""


class PathOutsideProject(PathError):
    """A path that leads out of the project's root, directly or by a symlink."""

    def __init__(self, path: str, root: str) -> None:
        super().__init__(f"{path!r} is outside the project {quoted(root)}. Use a path relative to the project root.")
        self.path = path
        self.root = root


class PathNotFound(PathError):
    """Nothing is at this path."""

    def __init__(self, path: str, close: Sequence[str] = ()) -> None:
        hint = f" Close matches: {listed(close)}." if close else " Use find_file or list_dir to see what exists."
        super().__init__(f"{path!r} does not exist in this project.{hint}")
        self.path = path
        self.close = list(close)


class PathRefused(PathError):
    """Something is at this path, but it can't be used for this: the message says why."""


class NotInEncoding(PathRefused):
    """A file whose bytes are not valid in the encoding that it should have."""

    def __init__(self, path: str, encoding: str, why: str) -> None:
        super().__init__(f"{path} is not valid {encoding}: {why}.")
        self.encoding = encoding


class PathIgnored(PathRefused):
    """Of what lies at this path no symbols are known."""

    def __init__(self, path: str, root: str) -> None:
        super().__init__(
            f"{path!r} is ignored (by git, by ignored_paths, as a nested repository or a build folder): no symbols in "
            f"it are known. To work on it, open it as a project of its own (project={quoted(f'{root}/{path}')})."
        )


class PathDenied(PathError):
    """A rule of a person's settings closes this path. The message names the rule, and nothing of what lies there."""


class MemoryNotFound(SerenaCentralError):
    """No memory has this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"There is no memory {quoted(name)}. Memories: {listed(known, 'none yet')}.")
        self.name = name


class MemoryChanged(SerenaCentralError):
    """A memory is not what the session has seen of it. `digest` belongs to `content`, what it is now."""

    several_lines = True

    def __init__(self, name: str, content: str, digest: str) -> None:
        super().__init__(
            f"Nothing was changed: memory {quoted(name)} has content that this session has not read. "
            f"{framed(content[:CONTENT_SHOWN], 'Its current content')}\nMerge it with your changes and call again."
        )
        self.name = name
        self.digest = digest


class SymbolNotFound(SerenaCentralError):
    """No symbol fits the pattern in the files that were asked. `unknown` says which files could not be."""

    def __init__(self, pattern: str, where: str, close: Sequence[str] = (), unknown: Sequence[str] = ()) -> None:
        hint = f" Close matches: {', '.join(close)}." if close else " get_symbols_overview lists the symbols of a file."
        super().__init__(" ".join([f"No symbol matches {pattern!r} in {where}.{hint}", *unknown]))
        self.pattern = pattern


class AmbiguousSymbol(SerenaCentralError):
    """Several symbols fit where one is needed. `candidates` are `path: name_path` lines; the message lists some."""

    several_lines = True

    def __init__(self, pattern: str, candidates: Sequence[str]) -> None:
        shown = "\n".join(map(escaped, candidates[:CANDIDATES_LISTED]))
        if len(candidates) > CANDIDATES_LISTED:
            shown += f"\n… and {len(candidates) - CANDIDATES_LISTED} more"
        super().__init__(
            f"{pattern!r} matches {len(candidates)} symbols. Pass relative_path, a longer name path, or one of these "
            f"with a / before it:\n{shown}"
        )
        self.candidates = list(candidates)


class TooManyMatches(SerenaCentralError):
    """More matches than max_matches allows. `per_file` maps root-relative path → count."""

    several_lines = True

    def __init__(self, total: int, limit: int, per_file: dict[str, int]) -> None:
        counts = "\n".join(f"{escaped(path)}: {count}" for path, count in per_file.items())
        super().__init__(
            f"{total} symbols match, more than max_matches={limit}. Narrow the pattern or pass relative_path:\n{counts}"
        )
        self.per_file = per_file
