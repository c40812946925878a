"""Installs and removes language servers in `servers/<name>/<version>`, completely or not at all.

A server's folder is locked, across processes, while it is built: a second process waits and finds it done. It is built
in a folder beside its place, run once, and renamed; the next installation removes what a crash left. The previous
version is kept, because its processes may still run.
"""

import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread
import msgspec

from serena_central.core.errors import InstallFailed, LanguageServerError
from serena_central.core.places import Places
from serena_central.lsp.catalogue import InstallRecipe, ServerSpec
from serena_central.lsp.installers.install_methods import INSTALL_METHODS, OUTSIDE
from serena_central.lsp.installers.needs import check_needs
from serena_central.lsp.installers.record import UNFINISHED, Installation, installation_in
from serena_central.lsp.installers.staging import Staging, Tell
from serena_central.lsp.installers.underway import LOCK, NOTE, Notes
from serena_central.lsp.locate import Launch, locate, newest_first
from serena_central.lsp.trial import try_out
from serena_central.standalone.lock import lock_at_once
from serena_central.standalone.private import close

KEPT_VERSIONS = 2
"""The one just installed, and the one before it."""

LOCK_POLL_S = 0.1

LOCK_WAIT_S = 5400.0
"""As long as the slowest way may take."""

REMOVAL_S = 60.0
"""How long one waits for a folder of many small files to be gone; what is left is removed the next time."""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome. `fresh`: it was installed now; `folder` is None for what lies elsewhere."""

    server: str
    version: str
    via: str
    folder: Path | None
    fresh: bool
    seconds: float


def recipes_of(spec: ServerSpec, methods: Sequence[str] = ()) -> list[InstallRecipe]:
    """What can be carried out of an entry's recipes, in its order; with `methods`, only those."""
    if spec.undriven:
        return []
    return [
        recipe for recipe in spec.install if recipe.via in INSTALL_METHODS and (not methods or recipe.via in methods)
    ]


async def install(spec: ServerSpec, places: Places, *, methods: Sequence[str] = (), tell: Tell) -> Installed:
    """Carries out the entry's first recipe that works on this machine; what is there already is left as it is.

    Raises:
        InstallFailed: no recipe worked; its message says of each why not.
    """
    began = time.monotonic()
    if spec.bundled and not methods and (launch := await _bundled(spec, places, tell)):
        return Installed(
            server=spec.name,
            version=launch.version,
            via="bundled",
            folder=None,
            fresh=False,
            seconds=time.monotonic() - began,
        )
    recipes = recipes_of(spec, methods)
    if not recipes:
        why = f"it is not supported yet; it requires {spec.undriven}" if spec.undriven else spec.how_to_get
        raise InstallFailed(spec.name, f"{spec.title} can't be installed by serena-central: {why}")
    async with _locked(spec, places, tell) as home:
        with closing(Notes(spec.name, home, tell)) as notes:
            recipe, folder, fresh = await _first_that_works(spec, recipes, home, places, notes)
    return Installed(
        server=spec.name,
        version=recipe.version,
        via=recipe.via,
        folder=folder,
        fresh=fresh,
        seconds=time.monotonic() - began,
    )


async def _first_that_works(
    spec: ServerSpec, recipes: Sequence[InstallRecipe], home: Path, places: Places, tell: Tell
) -> tuple[InstallRecipe, Path | None, bool]:
    """The recipe, the folder that it lies in, and whether it was carried out now.

    Raises:
        InstallFailed
    """
    problems: list[str] = []
    for recipe in recipes:
        folder = home / recipe.version if recipe.via not in OUTSIDE else None
        fresh = folder is None or installation_in(folder) is None
        try:
            if fresh:
                await _build(spec, recipe, home, folder, places, tell)
        except LanguageServerError as error:
            problems.append(f"{recipe.via}: {error}")
            tell(problems[-1])
        else:
            await anyio.to_thread.run_sync(_prune, home, folder)
            return recipe, folder, fresh
    raise InstallFailed(spec.name, f"{spec.title} could not be installed.\n" + "\n".join(problems))


async def uninstall(spec: ServerSpec, places: Places, *, tell: Tell) -> list[str]:
    """Removes what `install` put into `servers/`; returns the versions. Processes that run from it may fail later."""
    if not (places.servers / spec.name).is_dir():
        return []
    async with _locked(spec, places, tell) as home:
        versions = [folder.name for folder in newest_first(home)]
        for version in versions:
            await anyio.to_thread.run_sync(_remove, home / version)
        return versions


async def _build(
    spec: ServerSpec, recipe: InstallRecipe, home: Path, folder: Path | None, places: Places, tell: Tell
) -> None:
    """Builds beside `folder`, tries it out, and moves it there.

    Raises:
        LanguageServerError
    """
    way = INSTALL_METHODS[recipe.via]
    building = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=home))
    try:
        with anyio.move_on_after(way.TIMEOUT_S) as limit:
            shop = Staging(spec.name, building, tell, temporary=places.temporary)
            await check_needs((*way.NEEDS, *recipe.needs), shop)
            env = await way.build(recipe, shop)
            if folder is not None:
                _finish(recipe, building, env)
            await _try_out(spec, building if folder else None, places, tell)
            if folder is not None:
                await anyio.to_thread.run_sync(_put, building, folder)
        if limit.cancelled_caught:
            raise InstallFailed(spec.name, f"it did not finish within {way.TIMEOUT_S:g} s")
    finally:
        with anyio.move_on_after(REMOVAL_S, shield=True):
            await anyio.to_thread.run_sync(_remove, building)


def _finish(recipe: InstallRecipe, building: Path, env: dict[str, str]) -> None:
    """Raises: InstallFailed."""
    program = building / recipe.binary
    if not program.is_file():
        raise InstallFailed(recipe.package, f"{recipe.binary} is missing after the installation")
    program.chmod(program.stat().st_mode | 0o111)  # npm leaves this to install scripts, which do not run
    Installation(recipe.via, recipe.packages, {**env, **recipe.env}).write(building)


async def _bundled(spec: ServerSpec, places: Places, tell: Tell) -> Launch | None:
    """What comes with this product, if it is here and works."""
    try:
        await _try_out(spec, None, places, tell)
        return locate(spec, places.home, places, untrusted=None)
    except LanguageServerError:
        return None


async def _try_out(spec: ServerSpec, prefix: Path | None, places: Places, tell: Tell) -> None:
    """Starts what was built.

    Raises:
        LanguageServerError
    """
    tell("testing it")
    await try_out(spec, locate(spec, places.home, places, untrusted=None, prefix=prefix), places.temporary)


@asynccontextmanager
async def _locked(spec: ServerSpec, places: Places, tell: Tell) -> AsyncGenerator[Path]:
    """The server's folder, for this task alone, with nothing unfinished in it.

    Raises:
        InstallFailed
    """
    home = places.servers / spec.name
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (home / LOCK).open("a") as lock:
        with anyio.move_on_after(LOCK_WAIT_S) as limit:
            await _take(lock, tell)
        if limit.cancelled_caught:
            raise InstallFailed(
                spec.name, f"{spec.title} is still being installed by another process after {LOCK_WAIT_S:g} s"
            )
        await anyio.to_thread.run_sync(_sweep, home)
        yield home


async def _take(lock: IO[str], tell: Tell) -> None:
    """Waits for the lock, which the kernel gives back however its holder ends."""
    waiting = False
    while not lock_at_once(lock.fileno()):
        if not waiting:
            tell("waiting for another process that installs it")
        waiting = True
        await anyio.sleep(LOCK_POLL_S)


def sweep_all(places: Places) -> None:
    """Removes what crashed installations left, unless one is running."""
    for file in places.servers.glob(f"*/{LOCK}"):
        # One that is another user's, as after `sudo`, or that is just removed.
        with suppress(OSError), file.open("a") as lock:
            if lock_at_once(lock.fileno()):
                _sweep(file.parent)


def _sweep(home: Path) -> None:
    """The lock of the server's folder must be held. A crash's progress would pass for that of whoever holds it now."""
    with suppress(OSError):
        (home / NOTE).unlink()
    for folder in home.glob(f"{UNFINISHED}*"):
        _remove(folder)


def _prune(home: Path, current: Path | None) -> None:
    """Removes all but the newest versions, never the current one."""
    for folder in newest_first(home)[KEPT_VERSIONS:]:
        if folder != current:
            _remove(folder)


def _put(building: Path, folder: Path) -> None:
    close(str(building))
    _remove(folder)  # somebody's, without our record
    building.rename(folder)


def _remove(folder: Path) -> None:
    """At once for everybody who looks, then for good."""
    if folder.exists() and not folder.name.startswith(UNFINISHED):
        aside = folder.with_name(f"{UNFINISHED}{folder.name}")
        folder.rename(aside)
        folder = aside
    shutil.rmtree(folder, ignore_errors=True)
