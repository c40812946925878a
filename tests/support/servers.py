"""The core language servers, as `make servers` installs them; and tiny ones for real package managers to install."""

import io
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

from serena_central.core.places import Places
from serena_central.lsp.catalogue import InstallRecipe, Launching, ServerSpec
from tests.support.fakes import FAKE_SERVER

INSTALLED_HOME = Path(os.environ.get("SERVERS_HOME", Path(__file__).parents[2] / "build" / "servers-home"))
"""Where `make servers` installs."""

CORE_ARCH = Path("stdarch", "crates", "core_arch", "src")


def _lent(home: Path) -> Path:
    """A home with the servers of another one, whose rust-analyzer reads the standard library without the processors'
    intrinsics: they are two fifths of what it reads at each start, and nothing in the tests names one."""
    try:
        (installed,) = (home / "servers" / "rust-analyzer").glob("*/installed.json")
        record = json.loads(installed.read_bytes())
        library = Path(record["env"]["RUST_SRC_PATH"].replace("{prefix}", str(installed.parent)))
    except (ValueError, KeyError):
        return home  # there is none, or its library is a toolchain's
    lent = home.with_name(f"{home.name}-{installed.parent.name}")
    if not lent.exists():
        made = Path(tempfile.mkdtemp(prefix=f"{lent.name}-", dir=home.parent))
        own = made / "servers" / "rust-analyzer" / installed.parent.name
        own.mkdir(parents=True)
        for part in installed.parent.iterdir():
            (own / part.name).symlink_to(part)
        left_out = shutil.ignore_patterns("stdarch", "coretests", "alloctests")
        shutil.copytree(library, own / "library", ignore=left_out, copy_function=os.link)
        (own / "library" / CORE_ARCH).mkdir(parents=True)
        (own / "library" / CORE_ARCH / "mod.rs").write_text("pub mod arch {}\n")
        (own / "library" / CORE_ARCH / "core_arch_docs.md").touch()
        (own / "installed.json").unlink()
        record["env"]["RUST_SRC_PATH"] = "{prefix}/library"
        (own / "installed.json").write_text(json.dumps(record))
        try:
            made.rename(lent)
        except OSError:  # another worker was faster
            shutil.rmtree(made)
    for server in (home / "servers").iterdir():
        with suppress(FileExistsError):
            (lent / "servers" / server.name).symlink_to(server)
    return lent


SERVERS_HOME = _lent(INSTALLED_HOME)


def with_core_servers(places: Places) -> Places:
    """Lends a home of a test the core servers; fails when `make servers` has not run."""
    shared = Places(SERVERS_HOME).servers
    assert shared.is_dir(), f"{shared} is not there; run `make servers` first"
    places.home.mkdir(parents=True, exist_ok=True)
    places.servers.symlink_to(shared)
    return places


def pip_spec(folder: Path, version: str = "1.0.0") -> ServerSpec:
    """A server that pip installs from a wheel in `folder`."""
    wheel = _wheel(folder, version)
    recipe = InstallRecipe(via="pip", packages=(str(wheel),), version=version, binary="bin/tiny-ls")
    return _spec(recipe)


def npm_spec(folder: Path, version: str = "1.0.0") -> ServerSpec:
    """A server that npm installs from a tarball in `folder`; its install script leaves a file behind if it runs."""
    archive = _tarball(folder, version)
    recipe = InstallRecipe(via="npm", packages=(str(archive),), version=version, binary="node_modules/.bin/tiny-ls")
    return _spec(recipe)


def _spec(recipe: InstallRecipe) -> ServerSpec:
    return ServerSpec(
        name="tiny",
        title="Tiny",
        languages=("python",),
        launch=Launching(command=("{bin:tiny-ls}", "{}")),
        install=(recipe,),
    )


def _wheel(folder: Path, version: str) -> Path:
    """The scripted server as a package with a console script."""
    info = f"tiny_ls-{version}.dist-info"
    run = "import sys\n\n\ndef main():\n    FakeServer(Script(**json.loads(sys.argv[1]))).start()\n"
    files = {
        "tiny_ls.py": FAKE_SERVER.read_text(encoding="utf-8") + "\n\n" + run,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-ls\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntiny-ls = tiny_ls:main\n",
    }
    path = folder / f"tiny_ls-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")))
    return path


_NODE_SERVER = """#!/usr/bin/env node
if (process.argv[2] === "broken") process.exit(3);
let read = Buffer.alloc(0);
process.stdin.on("end", () => process.exit(0));
process.stdin.on("data", (chunk) => {
  read = Buffer.concat([read, chunk]);
  for (;;) {
    const head = read.indexOf("\\r\\n\\r\\n");
    if (head < 0) return;
    const length = Number(/Content-Length: (\\d+)/i.exec(read.subarray(0, head))[1]);
    if (read.length < head + 4 + length) return;
    const message = JSON.parse(read.subarray(head + 4, head + 4 + length));
    read = read.subarray(head + 4 + length);
    if (message.method === "exit") process.exit(0);
    if (message.id === undefined) continue;
    const start = { line: 0, character: 0 }, range = { start, end: { line: 0, character: 4 } };
    const results = {
      initialize: { capabilities: { documentSymbolProvider: true }, serverInfo: { name: "tiny", version: "1.0.0" } },
      "textDocument/documentSymbol": [{ name: "tiny", kind: 12, range, selectionRange: range }],
    };
    const result = results[message.method] ?? null;
    const body = JSON.stringify({ jsonrpc: "2.0", id: message.id, result });
    process.stdout.write(`Content-Length: ${Buffer.byteLength(body)}\\r\\n\\r\\n${body}`);
  }
});
"""


def _tarball(folder: Path, version: str) -> Path:
    manifest = {
        "name": "tiny-ls",
        "version": version,
        "bin": {"tiny-ls": "server.js"},
        "scripts": {"postinstall": "touch script-ran"},
    }
    path = folder / f"tiny-ls-{version}.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {"package.json": json.dumps(manifest), "server.js": _NODE_SERVER}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path
