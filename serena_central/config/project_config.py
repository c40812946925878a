"""The accepted settings files: which keys each may hold, in which spellings, and what has no effect there.

Serena's users keep `serena_config.yml`, `project.yml` and `project.local.yml`; what means the same is taken over.
"""

from typing import Any

from serena_central.config.model import groups_of, settings_of
from serena_central.config.reading import Convert, Dialect, as_it_is
from serena_central.config.settings import ProjectSettings, ServerSettings, SharedSettings

_SERENAS_OWN = [
    "added_modes",
    "additional_workspace_folders",
    "base_modes",
    "fixed_tools",
    "gui_log_window",
    "jetbrains_plugin_server_address",
    "language_backend",
    "line_ending",
    "ls_additional_workspace_folders",
    "project_serena_folder_location",
    "record_tool_usage_stats",
    "symbol_info_budget",
    "token_count_estimator",
    "trace_lsp_communication",
    "web_dashboard",
    "web_dashboard_interface",
    "web_dashboard_listen_address",
    "web_dashboard_open_on_launch",
]

_LEVELS = {10: "debug", 20: "info", 30: "warning", 40: "error", 50: "error"}
"""Serena gives levels as Python's logging counts them."""

_SHARED_SPELLINGS: dict[str, tuple[str, Convert]] = {
    "tool_timeout": ("tool_timeout_s", as_it_is),
    "default_max_tool_answer_chars": ("max_answer_chars", as_it_is),
    "ls_specific_settings": ("language_servers", as_it_is),
}


def _level(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower()
    return _LEVELS.get(value, value) if isinstance(value, int) else value


def _one(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_NO_EFFECT = dict.fromkeys(_SERENAS_OWN, "belongs to Serena and is ignored here")
_SERVER_WIDE = {
    key: "concerns the whole server and is ignored in a project; set it in ~/.serena/serena_config.yml"
    for key in (*settings_of(ServerSettings), *groups_of(ServerSettings))
    if key not in settings_of(SharedSettings)
}
_OF_ONE_PROJECT = {
    key: "concerns one project and is ignored here; set it in the project's .serena/project.yml"
    for key in settings_of(ProjectSettings)
    if key not in settings_of(SharedSettings)
}

SERVER_DIALECT = Dialect(
    ServerSettings, _SHARED_SPELLINGS | {"log_level": ("log_level", _level)}, _NO_EFFECT | _OF_ONE_PROJECT
)
"""/etc/serena-central/config.yml and ~/.serena/serena_config.yml."""

SHARED_DIALECT = Dialect(SharedSettings, _SHARED_SPELLINGS, _NO_EFFECT | _SERVER_WIDE | _OF_ONE_PROJECT)
"""A serena_config.yml that belongs to a repository."""

PROJECT_DIALECT = Dialect(
    ProjectSettings,
    _SHARED_SPELLINGS | {"name": ("project_name", as_it_is), "language": ("languages", _one)},
    _NO_EFFECT | _SERVER_WIDE,
)
"""project.yml and project.local.yml."""
