"""The schema of the catalogue: everything in which languages and language servers differ, as data.

Placeholders in `launch` and `initialization_options` are filled by `locate`: `{bin:NAME}` a program's path, `{root}`
the server's root, `{cache}` a folder of its own for that root, `{cpus}` how many CPUs it may use, `{jobs}` how many of
those its memory is enough for, `{modules}` the `node_modules` that the program lies in, `{tsdk}` the TypeScript 5
library in there, `{shims}` programs of ours that stand in for others where a project is not trusted, `{cargo_home}` the
user's CARGO_HOME, `{memory_mb}` what the server may use of the memory budget.
"""

import re
from collections.abc import Collection
from typing import Any, Literal

import msgspec

from serena_central.core.text import Encoding

Feature = Literal[
    "document_symbols",
    "references",
    "definition",
    "declaration",
    "implementation",
    "hover",
    "signature",
    "diagnostics",
    "call_hierarchy",
    "type_hierarchy",
    "rename",
]
"""A request of ours, by the name of its method on LanguageServer."""


Executed = Literal[
    "interpreter",
    "library",
    "plugins",
    "macros",
    "build",
    "config",
    "toolchain",
    "named",
    "unknown",
]
"""What of a project a server may execute: its interpreter; a compiler or library that lies in it; plug-ins; macros and
whatever else runs while code is compiled; its build tool and build scripts; configuration that is code; a toolchain
that it chooses or has fetched; programs that its configuration names; or something that has not been examined."""

Runtime = Literal["", "go", "node", "jvm"]
"""What executes a server, and takes a limit on its memory from the environment (`memory_limits`)."""

_EXECUTED: dict[Executed, str] = {
    "interpreter": "an interpreter",
    "library": "compilers or libraries",
    "plugins": "plug-ins",
    "macros": "macros",
    "build": "build scripts",
    "config": "configuration that is code",
    "toolchain": "a toolchain",
    "named": "programs that its configuration names",
    "unknown": "code",
}


class CatalogueStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of everything read from the catalogue: a misspelt key is an error, not a setting without effect."""


class Near(CatalogueStruct, frozen=True):
    """Files that are the language's only below a folder with one of the markers (names or globs)."""

    markers: tuple[str, ...]
    files: dict[str, tuple[str, ...]]


class Naming(CatalogueStruct, frozen=True):
    """Where what the server lists as symbols differs from what people call the definitions of a file."""

    scoped: str = ""
    """A regex that fits names of symbols which stand outside of their container and name it: its groups `scope` and
    `name` are the two parts (`Square::area`, `(*Square).Area`)."""
    separator: str = ""
    """Between the names of a scope of several."""
    decorated: str = ""
    """A regex that fits names which are written with parameters or type arguments: its group `name` is the plain name
    (`total(int)`, `Cart<T>`)."""
    imports: str = ""
    """A regex that fits the statements in which a server takes imported names for definitions."""
    anonymous: str = ""
    """A regex that fits what it calls functions, signatures, classes and blocks that have no name; an identifier is
    fitted only where it is given to a block, as a module, or is not what stands there."""
    values: str = ""
    """A regex that fits what stands behind the name of a variable or property (group `pair`: one of an object) whose
    value is a function, or by its group `class` a class."""


class Language(CatalogueStruct, frozen=True):
    """A language as people name it in settings; `files` maps LSP language identifier → file name patterns."""

    title: str
    server: str = ""
    """The server that is used when the settings name none; empty where `without` says why there is none."""
    without: str = ""
    files: dict[str, tuple[str, ...]] = {}
    near: tuple[Near, ...] = ()
    shebangs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names that people have for it in their settings."""
    unless: str = ""
    """A regex that fits the beginning of files that are none of the language's, although their names say so."""
    configuration: tuple[str, ...] = ()
    """Identifiers of files that say how the code is built, and hold no symbols."""
    naming: Naming = Naming()
    """Of all its servers whose entries say nothing about that."""
    above: tuple[str, ...] = ()
    """Entries of folders above a project that its servers and tools look for by themselves, and that may say what is
    executed."""
    data: bool = False
    """Markup, configuration and the like: read when a file is asked for, and not searched for symbols by name unless
    the project's `languages` name it."""

    @property
    def patterns(self) -> list[str]:
        """All its file name patterns."""
        tables = [self.files, *(near.files for near in self.near)]
        return [pattern for table in tables for patterns in table.values() for pattern in patterns]


class Launching(CatalogueStruct, frozen=True):
    """How the process is started. `command[0]` is a `{bin:NAME}`, or a path that a user has set."""

    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    runtime: Runtime = ""
    native: str = ""
    """A file beside the npm package, from `node_modules`: run in place of the package's script, which would only wait
    for it. `{os}` and `{arch}` are Node's names."""
    hosted: bool = False
    """The program is the language's own and the server a library of it: that the program is here says nothing of it."""
    connect: str = ""
    """`host:port` where the server listens already (Godot's editor): a relay of ours stands in for its process."""


class Roots(CatalogueStruct, frozen=True):
    """Which folder is the server's root for a file: see `roots.server_root`.

    `markers` are groups of file names or globs, the strongest first. `policy`: the nearest ancestor that holds a marker
    of the group, the topmost one, the project itself, or a named resolver. `unmarked`: what a symbol's uses may lack
    where neither the file's folder nor one above holds a marker of the first group.
    """

    markers: tuple[tuple[str, ...], ...] = ()
    policy: Literal["nearest", "topmost", "project", "go", "cargo"] = "project"
    unmarked: str | None = None


class OuterProject(CatalogueStruct, frozen=True):
    """The server takes a folder above its root for its project, by the files that it finds there, and then searches
    only what git does not ignore in that folder: see `roots.outer_project`.

    `files` maps a file's name → the table (dotted) with which it counts before files that are nearer to the root; empty
    if it always does. `setting` (dotted) names a configuration file to be used in place of those: with one, the
    server's project is its root.
    """

    files: dict[str, str]
    setting: str


class Readiness(CatalogueStruct, frozen=True):
    """When the server's answers can be believed.

    `none`: at once. `progress`: work whose title matches `titles` began, and all of it ended. `log`: a log line matches
    `pattern`. `notification`: `method` arrived with `field` == `value`. The wait for a first sign ends after `grace_s`
    (the server then counts as ready: it had nothing to do; but not where the grace is as long as the cap), the whole
    wait after `cap_s` (answers are then marked).
    """

    kind: Literal["none", "progress", "log", "notification"] = "none"
    titles: tuple[str, ...] = ()
    pattern: str = ""
    method: str = ""
    field: str = ""
    value: Any = None
    grace_s: float = 2.0
    cap_s: float = 60.0
    trouble: str = ""
    """A regex for log lines, and for the status notification as JSON, which say that a project could not be loaded: it
    stands as a note on every answer until a line matches `cured`, or a status no longer matches."""
    cured: str = ""
    after_open: bool = False
    """The server starts the work only once a document is open, so the clock starts there."""


class Documents(CatalogueStruct, frozen=True):
    """How the server is notified about documents."""

    unopened: tuple[Feature, ...] = ()
    """Requests that are answered for files that are not open, from disk; all others are preceded by a didOpen."""
    open_candidates: bool = False
    """References are complete only in files that are open: those that may hold the name are opened first."""
    answers_in_order: bool = False
    """It answers a request by the texts as they were when it was sent, whatever it is told right behind it; and tells
    the errors of files that are not open: so it can be asked what a change would break (`LspSession.errors_if`)."""
    settle_candidates: bool = False
    """What it knows of other files is of the time when it read them, which an opened file makes it do: it is asked for
    the file's symbols, and that awaited. It remembers what it read when the file is closed."""
    places_tell_uses: bool = False
    """Its references of a symbol that is defined once are those places of the name of which it says that they lead to
    the symbol's definition, and no others; it reads no file that git ignores."""
    reads_ignored: dict[str, str] = {}
    """Names of files, in the root and above it, or paths of the user's (`~/…`) → a text that stands in those which have
    it read what git ignores."""
    included: tuple[str, ...] = ()
    """Names (globs) of files whose text is part of others: when one changes, open files are rebuilt."""
    file_status: str = ""
    """Notification of what the server does with a file (`uri`, `state`), where it tells that: "idle" when it has read
    all that the file includes."""
    ranged_edits_only: bool = False
    """A didChange that carries the full text is ignored: it is sent as one edit that replaces everything."""
    trusts_mtime: bool = False
    """A closed file with the mtime that it knows is not read again, whatever it is told: it is opened for a moment."""
    reads_late: bool = False
    """It reads a file some time after it was told of a change: the file is opened for a moment, with its text."""
    packages_while_open: bool = False
    """It keeps the types of a package as long as a file of it is open, and else finds them again for each question: in
    Kubernetes gopls takes 1 to 2 s for the references to one symbol, and some milliseconds in a package with an open
    file."""
    project_per_platform: bool = False
    """An open file that is built for another platform (`go_platforms`) makes it keep the whole project once more: such
    a file is closed once nobody asks about it any more."""
    symbols_after_s: float = 0.0
    """It answers a request for the symbols of a file only after so many seconds, however small that is."""
    takes_in_s: float = 0.0
    """How long after didOpen it silently answers as if the document were empty; requests wait that long."""
    symbols_lag_s: float = 0.0
    """How long after a change it may tell the symbols of the text before, at places of the new one: it is asked again
    until every name stands where it says, and after that time taken at its word."""


class Watching(CatalogueStruct, frozen=True):
    """The changes on disk that the server is notified of (workspace/didChangeWatchedFiles)."""

    globs: tuple[str, ...] = ()
    """Sent whether or not the server registered for them; its own registrations are honoured too. Where an entry names
    none, they are made of its languages' patterns and its root markers."""
    linked: bool = False
    """It knows files of other packages by the links in `node_modules` through which it has reached them, and misses
    that one comes or goes if it is told by its own name alone."""
    by_itself: bool = False
    """The server watches the disk on its own and needs no notification."""
    rebuild: str = ""
    """The request that makes it build macros and run build scripts again, which it does not do by itself. Afterwards it
    is not ready until it says so. Not sent where it may not execute what the project brings."""


class InstallRecipe(CatalogueStruct, frozen=True):
    """One way to get the program, for `serena-central languages install` and for a person who does it manually.

    What pip, npm, go and cargo fetch is pinned exactly, each as its tool spells it: `pyrefly==1.4.1`,
    `typescript@7.0.2`, `golang.org/x/tools/gopls@v0.23.0`, `vhdl_ls@0.88.0`.
    """

    via: Literal["pip", "npm", "go", "cargo", "apt", "toolchain", "path", "manual"]
    """`toolchain`: a part of the language's own tools; `path`: comes with them; `manual`: from its makers alone."""
    packages: tuple[str, ...] = ()
    """The server's own package first, then what it needs beside it."""
    components: tuple[str, ...] = ()
    """What `rustup component add` takes, for `toolchain`."""
    binary: str = ""
    """The program's path, relative to the folder that was installed into: `bin/pyrefly`, `node_modules/.bin/tsc`."""
    version: str = ""
    """Name of the folder that it is installed into."""
    at_least: str = ""
    """An older program that is found does not count …"""
    below: str = ""
    """… nor does one of this version or a newer one."""
    scripts: bool = False
    """Its npm packages' install scripts have to run."""
    overrides: dict[str, str] = {}
    """Versions that npm takes of other packages, whatever those that need them say."""
    env: dict[str, str] = {}
    """What a server that was installed so needs in its environment; `{prefix}` is the folder that it is in."""
    needs: tuple[str, ...] = ()
    """Programs that it can't be installed or run without: `node>=18`."""
    url: str = ""
    """Its makers' page, for `manual`."""
    hint: str = ""
    """What to know or to do, for people."""

    @property
    def text(self) -> str:
        """What a person is shown: a command, or a page."""
        doing = _COMMANDS.get(self.via)
        if self.via == "toolchain" and self.components:
            said = f"rustup component add {' '.join(self.components)}"
        else:
            said = f"{doing} {' '.join(self.packages)}" if doing else self.url
        needs = f"requires {', '.join(self.needs)}" if self.needs else ""
        rest = "; ".join(filter(None, (self.hint, needs)))
        return f"{said} ({rest})" if said and rest else said or rest

    @property
    def package(self) -> str:
        """The name of the server's own package, without its version."""
        return _PINS.sub("", self.packages[0]) if self.packages else ""


_COMMANDS = {
    "pip": "pip install",
    "npm": "npm install -g",
    "go": "go install",
    "cargo": "cargo install --locked",
    "apt": "apt install",
}

_PINS = re.compile(r"(?<=.)@[^/@]*$|==.*$|\[.*$")
"""The version behind a package's name, and extras; npm's scopes begin with an @ as well."""


class Untrusted(CatalogueStruct, frozen=True):
    """How a server runs so that it executes nothing of its project, where that is not trusted. It is laid over all else
    that is said of the server; the project's own settings for it do not count."""

    args: tuple[str, ...] = ()
    """Added to the command."""
    without_args: tuple[str, ...] = ()
    """Options that are taken out of the command (`--name` and `--name=…`), where a user's settings have them."""
    env: dict[str, str] = {}
    initialization_options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    unless: tuple[str, ...] = ()
    """Names of files in the server's root, or above it, with which it can't be kept from executing: it is not run."""
    confined: bool = False
    """It is run only where the system can keep it from writing what the project names (`lsp/confined.py`)."""
    writes: tuple[str, ...] = ()
    """Folders in which it may write there, beside its temporary one: caches that it shares with its user's tools."""
    online: bool = False
    """It may connect to others there: it fetches packages, from where its user's settings say."""
    lacks: str = ""
    """What answers may lack, as a clause for its users: `macros are not expanded`."""


class ServerSpec(CatalogueStruct, frozen=True):
    """One server's entry. `name` is what settings and people call it, and the key of everything about it."""

    name: str
    title: str
    languages: tuple[str, ...]
    launch: Launching = Launching()
    roots: Roots = Roots()
    outer_project: OuterProject | None = None
    environment: Literal["", "python", "interpreter"] = ""
    """How it learns in which environment third-party imports are resolved. `python`: as the one that is active
    (VIRTUAL_ENV, CONDA_PREFIX). `interpreter`: by the setting `python.pythonPath`; it runs that program."""
    environment_keys: dict[str, tuple[str, ...]] = {}
    """File in the project → dotted keys by which its own configuration names an environment: these go before ours."""
    dependencies: Literal["", "npm", "cargo", "go"] = ""
    """By what packages come to it: where they are missing, answers lack what is imported from them."""
    exclusive: bool = False
    """Two at a time on one root would spoil each other's data: the old one ends before its successor starts."""
    reads: tuple[str, ...] = ()
    """Other languages whose files it reads, too, and of whose symbols it lists the uses. Their own servers know nothing
    of its files."""
    lists_within: tuple[str, ...] = ()
    """Such uses it lists in one project alone, that of the symbol's file: what lies below a folder with a file of one
    of these names. Of places in others it says where they lead."""
    leads_into: tuple[str, ...] = ()
    """The same of a server that lists no uses of such symbols, and says of each place where it leads."""
    use_prefix: str = ""
    """What its files may write before the name of a symbol to use its content: `$count` reads the store `count`."""
    undriven: str = ""
    """What is still missing before this server can be used here: it is known, shown, and never started."""
    formerly: tuple[str, ...] = ()
    """Names of servers that are dead or renamed, and that this one stands in for."""
    initialization_options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    """Answers to workspace/configuration, by section; the project's settings are laid over them."""
    capabilities: dict[str, Any] = {}
    """Merged into the client capabilities that every server gets."""
    encodings: tuple[Encoding, ...] = ("utf-8", "utf-32", "utf-16")
    readiness: Readiness = Readiness()
    documents: Documents = Documents()
    naming: Naming = Naming()
    watch: Watching = Watching()
    inapplicable: str = ""
    """A regex that fits the errors by which it refuses a question that makes no sense for a symbol."""
    retry_codes: tuple[int, ...] = (-32801, -32802, -32800)
    deny: tuple[Feature, ...] = ()
    """Offered by the server, and not to be used: its answers there are wrong."""
    unadvertised: tuple[Feature, ...] = ()
    """Answered by the server, although it does not say so."""
    searches_all_files: bool = False
    """Each question for references makes it search the text of all files, however few hold the name."""
    install: tuple[InstallRecipe, ...] = ()
    """In the order of preference."""
    executes: tuple[Executed, ...] | None = None
    """What it executes of a project; None if this is not stated, which counts as everything."""
    untrusted: Untrusted | None = None
    """How it runs for a project that is not trusted. Without it such a project gets the server only if `executes` is
    empty."""
    bundled: bool = False
    """It is installed together with this product."""
    memory_mb: int = 500
    """A hint for the memory budget before anything is measured."""
    note: str = ""
    """What a user should know: a licence, a limit."""

    @property
    def read_languages(self) -> tuple[str, ...]:
        """Its own languages, and the others whose files its answers depend on."""
        return *self.languages, *self.reads, *self.leads_into

    def knows_uses_of(self, languages: Collection[str]) -> bool:
        """Whether its files use symbols of one of some other languages, as it can tell."""
        return any(language in languages for language in (*self.reads, *self.leads_into))

    @property
    def executed(self) -> str:
        """What it executes of a project, in words; empty for nothing."""
        kinds: tuple[Executed, ...] = ("unknown",) if self.executes is None else self.executes
        return ", ".join(_EXECUTED[kind] for kind in kinds)

    @property
    def restricted(self) -> Untrusted | None:
        """How it runs for a project that is not trusted; None where it does not."""
        if self.executes is None:
            return None
        return self.untrusted or (None if self.executes else Untrusted())

    @property
    def how_to_get(self) -> str:
        """One command, or where to look, for a person whose machine lacks the program."""
        needed = next((recipe.needs for recipe in self.install if recipe.packages or recipe.components), None)
        if needed is not None:
            needs = f" (requires {', '.join(needed)})" if needed else ""
            return f"serena-central languages install {self.name}{needs}"
        return "; or ".join(recipe.text for recipe in self.install) or f"see the documentation of {self.title}"
