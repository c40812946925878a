"""Changes settings of the running server: in the user's file, where comments stay, and in the parts concerned."""

import json
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from serena_central.config.changing import value_in, with_value
from serena_central.config.describe import describe, values_of
from serena_central.config.document import DocumentError
from serena_central.config.layers import Loaded
from serena_central.config.settings import LIVE_SETTINGS, ServerSettings
from serena_central.core.errors import ConfigError, InvalidArguments
from serena_central.core.event_kinds import SettingChanged
from serena_central.tools.context import Services

Take = Callable[[ServerSettings], None]
"""Applies settings to a part."""


class LiveSettings:
    """Belongs to the event loop's thread."""

    def __init__(self, services: Services, takes: list[Take]) -> None:
        """`takes` are called after each change, too."""
        self._services = services
        self._takes = takes
        self._changing = anyio.Lock()

    def refusal(self, key: str) -> str:
        """Why a setting can't be changed in the user's file; "" if it can."""
        loaded = self._services.loaded
        if key not in LIVE_SETTINGS:
            return "takes effect when the server is started"
        if loaded.own_file is None or loaded.again is None:
            return "this server was started without a file of settings"
        stronger = next((one for one in loaded.origins.get(key, ()) if one.kind in ("environment", "flag")), None)
        return f"set by the {stronger}, which counts more than the file" if stronger else ""

    async def change(self, key: str, value: Any, *, was: str | None = None, undo: bool = False) -> bool:
        """Writes a checked value; None removes the key. False if the file said so already. To `undo` a change, `was`
        is what the file must still say, as JSON.

        Raises:
            ConfigError: the file can't be changed, or is not valid any more; nothing was changed.
            InvalidArguments
        """
        if refusal := self.refusal(key):
            raise InvalidArguments(f"{key} can't be changed here: {refusal}.")
        async with self._changing:
            loaded = self._services.loaded
            assert loaded.own_file is not None
            file = loaded.own_file.resolve()
            text = await anyio.to_thread.run_sync(_read, file)
            before = _said(text, key, file)
            if undo and before != was:
                raise InvalidArguments(f"{key} has been changed since: {file} says {before or 'nothing'} now.")
            fresh = with_value(text, key, value, file=str(file))
            if fresh == text:
                return False
            await anyio.to_thread.run_sync(_write, file, fresh)
            try:
                self._take(await self._loaded_again())
            except ConfigError:
                await anyio.to_thread.run_sync(_write, file, text)
                raise
        after = None if value is None else json.dumps(value, ensure_ascii=False)
        self._services.bus.publish(SettingChanged(message=key, key=key, before=before, after=after))
        return True

    async def not_in_force(self) -> list[str]:
        """Sentences about what the files say and the server does not know: they were changed since it read them."""
        if self._services.loaded.again is None:
            return []
        try:
            loaded = await self._loaded_again()
        except ConfigError as error:
            return [f"The settings can't be read again, and no server could start with them: {error}"]
        known, fresh = values_of(self._services.loaded), values_of(loaded)
        changed = [
            f"{row.key} ({row.origin})"
            for row in describe(loaded)
            if row.key not in known or known[row.key] != fresh[row.key]
        ]
        changed += [key for key in known if key not in fresh]  # entries that are gone
        if not changed:
            return []
        return [f"Changed since the server read them: {', '.join(changed)}. `serena-central restart` applies them."]

    async def reload(self) -> None:
        """Takes over what another server with the same file has changed.

        Raises:
            ConfigError: the file is not valid; nothing was changed.
        """
        async with self._changing:
            if self._services.loaded.again is not None:
                self._take(await self._loaded_again())

    async def _loaded_again(self) -> Loaded[ServerSettings]:
        again = self._services.loaded.again
        assert again is not None
        return await anyio.to_thread.run_sync(again)

    def _take(self, loaded: Loaded[ServerSettings]) -> None:
        services, settings = self._services, loaded.value
        services.root_settings.loaded = loaded
        services.pool.take_policy(settings.pool)
        services.sessions.policy = settings.sessions
        services.store.policy = settings.retention
        services.offer.settings = services.upstreams.settings = settings
        logging.getLogger().setLevel(settings.log_level.upper())
        for take in self._takes:
            take(settings)


def _said(text: str, key: str, file: Path) -> str | None:
    try:
        found = value_in(text, key)
    except DocumentError as error:
        raise ConfigError(key, f"can't be changed in this file ({error})", file=str(file)) from error
    return None if found is None else json.dumps(found, ensure_ascii=False)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("file", f"can't be read ({error})", file=str(file)) from error


def _write(file: Path, text: str) -> None:
    """All of it or nothing; the file keeps its mode."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        draft = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                opened.write(text)
            if file.exists():
                draft.chmod(file.stat().st_mode & 0o7777)
            draft.replace(file)
        except BaseException:
            draft.unlink()
            raise
    except OSError as error:
        raise ConfigError("file", f"can't be written ({error.strerror})", file=str(file)) from error
