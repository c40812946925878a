"""Modes and contexts: named sets of hidden tools and instructions, as YAML data.

A context fits the client (what tools it has itself, what its schemas can hold); modes fit the task and are switched
during a conversation. Ours lie beside this file in `profiles/`; a user's own in `$SERENA_HOME/modes` and `contexts`
come on top, by file name. Whether a tool of a given name exists is not known here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from serena_central.config.document import DocumentError, read_document
from serena_central.core.decoding import converted

OWN = Path(__file__).with_name("profiles")


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """A way of working. `prompt` is returned to the agent; `read_only` hides every tool that changes files of a
    project."""

    name: str
    description: str = ""
    prompt: str = ""
    excluded_tools: list[str] = []
    included_optional_tools: list[str] = []
    read_only: bool = False


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of client. Its excluded tools are not listed, because the client has its own; they can still be called.

    `clients` are names that clients give themselves. `plain_schemas`: no integers and no alternatives of types.
    """

    name: str
    description: str = ""
    prompt: str = ""
    excluded_tools: list[str] = []
    included_optional_tools: list[str] = []
    clients: list[str] = []
    plain_schemas: bool = False


class Profiles(NamedTuple):
    """All modes and contexts by name, and what was wrong with users' files, a sentence each."""

    modes: Mapping[str, Mode]
    contexts: Mapping[str, Context]
    problems: list[str]

    def context_for(self, named: str | None, client: str, default: str) -> Context:
        """The context of a client: the one it names, else the one made for its name, else the default."""
        if named is not None and named in self.contexts:
            return self.contexts[named]
        for context in self.contexts.values():
            if client in context.clients:
                return context
        return self.contexts.get(default) or self.contexts["agent"]


def load_profiles(serena_home: Path | None = None) -> Profiles:
    """Reads our modes and contexts, then those in `serena_home`. A user's file that can't be used is a problem only."""
    problems: list[str] = []
    modes = _read(OWN / "modes", Mode, problems)
    contexts = _read(OWN / "contexts", Context, problems)
    if serena_home is not None:
        modes |= _read(serena_home / "modes", Mode, problems)
        contexts |= _read(serena_home / "contexts", Context, problems)
    return Profiles(modes, contexts, problems)


_Kind = TypeVar("_Kind", Mode, Context)


def _read(folder: Path, kind: type[_Kind], problems: list[str]) -> dict[str, _Kind]:
    found: dict[str, _Kind] = {}
    for file in sorted(folder.glob("*.yml")):
        try:
            found[file.stem] = _parsed(file, kind, problems)
        except (OSError, DocumentError, msgspec.ValidationError) as error:
            problems.append(f"{file} is ignored: {' '.join(str(error).split())}")
    return found


def _parsed(file: Path, kind: type[_Kind], problems: list[str]) -> _Kind:
    document = read_document(file)
    given = document.values if document else {}
    said = {str(key): value for key, value in given.items() if value is not None}
    unknown = sorted(key for key in said if key not in kind.__struct_fields__)
    if unknown:
        problems.append(f"{file}: {', '.join(unknown)} is ignored")
    return converted({**{key: said[key] for key in said if key not in unknown}, "name": file.stem}, kind)
