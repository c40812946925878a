"""Generates docs/languages.md from the catalogue: `python -m serena_central.lsp.catalogue.page` prints it.

A test compares the two, so that the page can't drift from the data.
"""

import sys

from serena_central.lsp.catalogue.registry import Catalogue, catalogue
from serena_central.lsp.catalogue.spec import ServerSpec

_HEAD = """\
# Languages

Generated from `serena_central/lsp/catalogue/` by `make docs`; change the data there.

{languages} languages, {servers} servers. `serena-central languages list` shows the same for your machine,
`serena-central languages install NAME` installs a server, and `serena_config.yml` selects another or adds your own (see
[language-servers.md](language-servers.md)). Files marked *near* a name are the language's only below a folder with
it. *Data* files are only read by path; symbol search includes them if the project's `languages` name them.

A *symbol* is a definition with a name. Variables in a function do not count, unless their value is a function or a
class, nor are the properties of objects made there, nor functions without a name (callbacks): a reference in them
belongs to the enclosing symbol.

| language | files | server | others |
|---|---|---|---|
"""

_SERVERS = """
## Servers

In an untrusted repository only servers that execute none of its code are started: some never do, some run restricted.

| server | languages | ready when | executes project code | without trust | how to install | notes |
|---|---|---|---|---|---|---|
"""


def page(known: Catalogue) -> str:
    """The page's Markdown."""
    lines = [_HEAD.format(languages=len(known.languages), servers=len(known.servers))]
    lines += [_language(known, name) for name in sorted(known.languages)]
    lines.append(_SERVERS)
    lines += [_server(spec) for _, spec in sorted(known.servers.items())]
    return "".join(lines)


def _language(known: Catalogue, name: str) -> str:
    entry = known.languages[name]
    files = [_code(*(pattern for patterns in entry.files.values() for pattern in patterns))]
    for near in entry.near:
        patterns = [pattern for group in near.files.values() for pattern in group]
        files.append(f"{_code(*patterns)} *near* {_code(*near.markers)}")
    default = known.default_server(name)
    others = [spec.name for spec in known.servers_of(name) if spec is not default]
    server = default.name if default else f"none: {entry.without}"
    kind = " *data*" if entry.data else ""
    return _row(f"{entry.title} (`{name}`){kind}", "; ".join(filter(None, files)), server, ", ".join(others))


def _server(spec: ServerSpec) -> str:
    used = ", ".join((*spec.reads, *spec.leads_into))
    notes = [
        f"recognized, not supported yet: requires {spec.undriven}" if spec.undriven else "",
        f"finds what its files use of {used}" if used else "",
        spec.note,
    ]
    return _row(
        f"{spec.title} (`{spec.name}`)",
        ", ".join(spec.languages),
        _readiness(spec),
        spec.executed or "nothing",
        _without_trust(spec),
        "; or ".join(_code(recipe.text) if recipe.packages else recipe.text for recipe in spec.install),
        "; ".join(filter(None, notes)),
    )


def _without_trust(spec: ServerSpec) -> str:
    if spec.restricted is None:
        return "not started"
    lacks = spec.restricted.lacks
    return f"restricted: {lacks}" if lacks else "runs"


def _readiness(spec: ServerSpec) -> str:
    match spec.readiness.kind:
        case "none":
            return "asked"
        case "progress":
            titles = ", ".join(filter(None, spec.readiness.titles))
            return f"progress ended ({titles})" if titles else "progress ended"
        case "log":
            return "log message"
        case "notification":
            return f"`{spec.readiness.method}` received"


def _code(*words: str) -> str:
    return " ".join(f"`{word}`" for word in words)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.stdout.write(page(catalogue()))
