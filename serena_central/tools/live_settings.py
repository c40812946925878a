"""Changes settings of the running server: in the user's file, where comments stay, and in the parts concerned."""

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from serena_central.config.changing import lock_of, value_in, with_value
from serena_central.config.describe import describe, values_of
from serena_central.config.document import DocumentError
from serena_central.config.layers import Loaded
from serena_central.config.settings import LIVE_SETTINGS, ServerSettings
from serena_central.core.errors import ConfigError, InvalidArguments
from serena_central.core.event_kinds import SettingChanged
from serena_central.files.atomic import write_whole
from serena_central.standalone.edited_text import edited, exact_text
from serena_central.standalone.lock import locked
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
            ConfigError: the file can't be changed, or is not valid any more; nothing was changed. Nor is what another
                program has written meanwhile.
            InvalidArguments
        """
        if refusal := self.refusal(key):
            raise InvalidArguments(f"{key} can't be changed here: {refusal}.")
        async with self._changing:
            own_file = self._services.loaded.own_file
            assert own_file is not None
            file = own_file.resolve()

            def edit(text: str) -> str:
                if undo and (before := _said(text, key, file)) != was:
                    raise InvalidArguments(f"{key} has been changed since: {file} says {before or 'nothing'} now.")
                return with_value(text, key, value, file=str(file))

            found = await anyio.to_thread.run_sync(_changed, file, edit, self._services.loaded.again)
            if found is None:
                return False
            text, loaded = found
            self._take(loaded)
        before = _said(text, key, file)
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


def _changed(
    file: Path, edit: Callable[[str], str], again: Callable[[], Loaded[ServerSettings]] | None
) -> tuple[str, Loaded[ServerSettings]] | None:
    """Changes a file, which several servers may have, and reads all settings again; its text before that. None if it
    said so already. In one go, so that no cancellation leaves a part of it."""
    assert again is not None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock_of(file)):
            text = _read(file)
            fresh = edited(text, edit)
            if fresh == text:
                return None
            _replace(file, text, fresh)
            try:
                return text, again()
            except ConfigError:
                with suppress(ConfigError):
                    _replace(file, fresh, text)
                raise
    except OSError as error:
        raise ConfigError("file", f"can't be written ({error.strerror or error})", file=str(file)) from error


def _said(text: str, key: str, file: Path) -> str | None:
    try:
        found = value_in(text, key)
    except DocumentError as error:
        raise ConfigError(key, f"can't be changed in this file ({error})", file=str(file)) from error
    return None if found is None else json.dumps(found, ensure_ascii=False)


def _read(file: Path) -> str:
    try:
        return exact_text(file.read_bytes())
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("file", f"can't be read ({error})", file=str(file)) from error


def _replace(file: Path, before: str, after: str) -> None:
    """Makes one text of a file another. It keeps its mode; a new one is the user's alone.

    Raises:
        ConfigError: it is no longer the one.
        OSError
    """

    def check() -> None:
        if _read(file) != before:
            raise ConfigError("file", "another program has just changed it; try again", file=str(file))

    write_whole(file, after.encode(), shared=file.exists(), check=check)
