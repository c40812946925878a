"""Generates docs/settings.md from the model: `python -m serena_central.config.page` prints it."""

import sys
from collections.abc import Iterator

from serena_central.config.describe import json_of
from serena_central.config.model import Setting, groups_of, settings_of
from serena_central.config.settings import ProjectSettings, ServerSettings

_HEAD = """\
# Settings

Every key, its default and its meaning. `serena-central config init` writes a commented template of them to
`~/.serena/serena_config.yml`; `serena-central config show --origins` shows which values count and where they come from.

A key such as `pool.idle_ttl_s` is `idle_ttl_s` below `pool:` in the file, and the variable
`SERENA_CENTRAL_POOL_IDLE_TTL_S`; `central_server_port` is `SERENA_CENTRAL_SERVER_PORT`. Keys marked with * may also
stand in a project's files (`serena-central config init --project DIR`).

The server reads its files when it starts; `serena-central status` says what was changed in them since. What takes
effect without a restart stands under "Changing settings" in [dashboard.md](dashboard.md).
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    groups, group = groups_of(ServerSettings), None
    of_projects = settings_of(ProjectSettings)
    for setting in settings_of(ServerSettings).values():
        of = setting.key.rpartition(".")[0]
        if of != group:
            group = of
            if of:
                yield f"\n## {of}\n\n{groups[of]}"
            yield "\n| key | default | meaning |\n|---|---|---|"
        yield _row(setting, of_project=setting.key in of_projects)
    own = [one for key, one in of_projects.items() if key not in settings_of(ServerSettings)]
    yield "\n## In a project's files only\n\n| key | default | meaning |\n|---|---|---|"
    for setting in own:
        yield _row(setting, of_project=False)


def _row(setting: Setting, *, of_project: bool) -> str:
    star = " *" if of_project else ""
    meaning = f"{setting.description} ({setting.allowed})".replace("|", "\\|")
    return f"| `{setting.key}`{star} | `{json_of(setting.default)}` | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
