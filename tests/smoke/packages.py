"""Real packages, at fixed versions, from the registries of their languages; they stay in `build/packages`.

Debian packages have the version of the release that runs. Nothing that a package brings is executed.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build" / "packages"


def from_pypi(name: str, version: str) -> Path:
    """A source distribution of pure Python."""
    root = BUILD / f"{name}-{version}"
    if not root.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
        subprocess.run([*pip, "--dest", str(BUILD), f"{name}=={version}"], check=True)
        with tarfile.open(BUILD / f"{name}-{version}.tar.gz") as archive:
            archive.extractall(BUILD, filter="data")
    return root


def from_npm(name: str, version: str) -> Path:
    root = BUILD / f"npm-{name}-{version}"
    if not root.exists():
        packed = ["npm", "pack", "--silent", f"{name}@{version}", "--pack-destination", str(BUILD)]
        subprocess.run(packed, check=True)
        with tarfile.open(BUILD / f"{name}-{version}.tgz") as archive:
            archive.extractall(root, filter="data")
    return root / "package"


def from_go(module: str, version: str) -> Path:
    environment = {**os.environ, "GOMODCACHE": str(BUILD / "go"), "GOFLAGS": "-modcacherw"}
    command = ["go", "mod", "download", "-json", f"{module}@v{version}"]
    told = subprocess.run(command, check=True, capture_output=True, env=environment, cwd=BUILD)
    return Path(json.loads(told.stdout)["Dir"])


def from_cargo(name: str, version: str) -> Path:
    user = BUILD / f"crate-{name}"
    (user / "src").mkdir(parents=True, exist_ok=True)
    (user / "src" / "lib.rs").write_text("")
    manifest = f'[package]\nname = "x"\n[workspace]\n[dependencies]\n{name} = "={version}"\n'
    (user / "Cargo.toml").write_text(manifest)
    environment = {**os.environ, "CARGO_HOME": str(BUILD / "cargo")}
    subprocess.run(["cargo", "fetch", "--quiet"], check=True, env=environment, cwd=user)
    return next((BUILD / "cargo" / "registry" / "src").glob(f"*/{name}-{version}"))


def from_debian(name: str) -> Path:
    """The files of a binary package, unpacked; needs `apt-get update` to have run."""
    root = BUILD / f"debian-{name}"
    if not root.exists():
        fetched = BUILD / f"fetched-{name}"
        shutil.rmtree(fetched, ignore_errors=True)
        fetched.mkdir()
        subprocess.run(["apt-get", "download", "-qq", name], check=True, cwd=fetched)
        subprocess.run(["dpkg-deb", "--extract", *map(str, fetched.glob("*.deb")), str(root)], check=True)
    return root
