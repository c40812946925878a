"""Layers of settings: which one counts, where each value came from, and what is said about the rest."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serena_central.config.describe import describe, template, values_of
from serena_central.config.load import Sources, load_project_config, load_server_config, serena_home, variables
from serena_central.config.model import get, settings_of
from serena_central.config.settings import ProjectSettings, ServerSettings
from serena_central.core.errors import ConfigError


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(machine=tmp_path / "etc.yml", user=tmp_path / "user.yml", environment={})


def with_environment(sources: Sources, **variables: str) -> Sources:
    return Sources(sources.machine, sources.user, {name.upper(): value for name, value in variables.items()})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / ".serena").mkdir(parents=True)
    (tmp_path / "root" / ".claude" / ".serena").mkdir(parents=True)
    return tmp_path / "root"


def test_without_any_source_all_is_default(sources: Sources) -> None:
    loaded = load_server_config({}, sources)
    assert loaded.value == ServerSettings()
    assert {str(origin) for origins in loaded.origins.values() for origin in origins} == {"default"}
    assert loaded.problems == []


def test_each_layer_is_stronger_than_the_one_before(sources: Sources) -> None:
    def port(given: Sources, **flags: Any) -> tuple[int, str]:
        loaded = load_server_config(flags, given)
        return loaded.value.central_server_port, str(loaded.origins["central_server_port"][0])

    sources.machine.write_text("# comment\ncentral_server_port: 1001\n")
    assert port(sources) == (1001, f"{sources.machine}:2")
    sources.user.write_text("central_server_port: 1002\n")
    assert port(sources) == (1002, f"{sources.user}:1")
    loud = with_environment(sources, serena_central_server_port="1003")
    assert port(loud) == (1003, "environment SERENA_CENTRAL_SERVER_PORT")
    assert port(loud, central_server_port=None)[0] == 1003
    assert port(loud, central_server_port=1004) == (1004, "flag central_server_port")


LAYERS = ("machine", "user", "environment", "flags")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(LAYERS), st.integers(1, 65535)))
def test_the_strongest_layer_that_speaks_counts(sources: Sources, given_ports: dict[str, int]) -> None:
    for name, path in (("machine", sources.machine), ("user", sources.user)):
        path.write_text(f"central_server_port: {given_ports[name]}\n" if name in given_ports else "")
    environment = (
        {"SERENA_CENTRAL_SERVER_PORT": str(given_ports["environment"])} if "environment" in given_ports else {}
    )
    loaded = load_server_config(
        {"central_server_port": given_ports.get("flags")}, Sources(sources.machine, sources.user, environment)
    )
    expected = next((given_ports[name] for name in reversed(LAYERS) if name in given_ports), 24280)
    assert loaded.value.central_server_port == expected


def test_lists_of_tools_add_up_and_tell_all_their_origins(sources: Sources) -> None:
    sources.machine.write_text("excluded_tools: [a, b]\n")
    sources.user.write_text("excluded_tools: [b, c]\n")
    loaded = load_server_config({}, with_environment(sources, serena_central_excluded_tools="c, d"))
    assert loaded.value.excluded_tools == ["a", "b", "c", "d"]
    assert len(loaded.origins["excluded_tools"]) == 3


def test_free_mappings_combine_by_entry(sources: Sources) -> None:
    sources.machine.write_text("language_servers:\n  python: {server: ty}\n  go: {server: gopls}\n")
    sources.user.write_text("language_servers:\n\n  python: {server: pyrefly}\n")
    loaded = load_server_config({}, sources)
    assert loaded.value.language_servers == {"python": {"server": "pyrefly"}, "go": {"server": "gopls"}}
    assert str(loaded.origins["language_servers.python"][0]) == f"{sources.user}:3"
    assert str(loaded.origins["language_servers.go"][0]) == f"{sources.machine}:3"


def test_mappings_in_groups_combine_by_entry_too(sources: Sources) -> None:
    sources.machine.write_text("hub:\n  sharing: {browser: session, a.b: shared}\n")
    sources.user.write_text("hub:\n  sharing: {browser: project}\n")
    loaded = load_server_config({}, sources)
    assert loaded.value.hub.sharing == {"browser": "project", "a.b": "shared"}
    assert str(loaded.origins["hub.sharing.browser"][0]).startswith(str(sources.user))
    rows = {row.key: row.value for row in describe(loaded)}
    assert (rows["hub.sharing.browser"], rows["hub.sharing.a.b"]) == ('"project"', '"shared"')


def test_variables_speak_every_type(sources: Sources) -> None:
    loaded = load_server_config(
        {},
        with_environment(
            sources,
            serena_central_read_only="true",
            serena_central_pool_idle_ttl_s="12.5",
            serena_central_allowed_roots="/a, ~/b",
            serena_central_language_servers="{python: {server: ty}}",
            serena_central_central_server_host="::1",
            serena_central_home="/somewhere",
        ),
    )
    value = loaded.value
    assert (value.read_only, value.pool.idle_ttl_s, value.allowed_roots) == (True, 12.5, ["/a", "~/b"])
    assert (value.language_servers, value.central_server_host) == ({"python": {"server": "ty"}}, "::1")
    assert loaded.problems == []


def test_no_two_keys_share_a_variable() -> None:
    assert len(variables()) == len(settings_of(ServerSettings))


@pytest.mark.parametrize(
    ("line", "key", "allowed"),
    [
        ("central_server_port: 70000", "central_server_port", "a whole number from 0 to 65535, not 70000"),
        ("central_server_port: true", "central_server_port", "a whole number from 0 to 65535, not True"),
        ("pool: {idle_ttl_s: .nan}", "pool.idle_ttl_s", "a number, at least 1, not nan"),
        ("pool: 7", "pool", "a mapping with start_timeout_s, idle_ttl_s"),
        ("log_level: loud", "log_level", "one of debug, error, info, warning, not 'loud'"),
        ("allowed_roots: [relative]", "allowed_roots", "a list, each item an absolute path"),
        ("read_only: maybe", "read_only", "true or false"),
        ("database_url: mysql://me@host/db", "database_url", "begins with sqlite:/// or postgresql://"),
        ("central_server_url: ftp://x", "central_server_url", "a URL that begins with http:// or https://"),
        ("language_servers: [python]", "language_servers", "a mapping"),
        ("tool_timeout: -1", "tool_timeout_s", "a number from 0.1 to 86400, not -1"),
    ],
)
def test_a_wrong_value_names_file_line_key_and_what_is_allowed(
    sources: Sources, line: str, key: str, allowed: str
) -> None:
    sources.user.write_text(f"# Serena\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load_server_config({}, sources)
    error = caught.value
    assert (error.file, error.line, error.key) == (str(sources.user), 2, key)
    assert allowed in str(error)


def test_a_wrong_variable_and_a_wrong_flag_are_named(sources: Sources) -> None:
    with pytest.raises(ConfigError, match="environment SERENA_CENTRAL_SERVER_PORT"):
        load_server_config({}, with_environment(sources, serena_central_server_port="many"))
    with pytest.raises(ConfigError, match="flag central_server_port"):
        load_server_config({"central_server_port": -1}, sources)


def test_a_file_that_is_no_yaml_is_fatal_for_the_server(sources: Sources) -> None:
    sources.user.write_text("a: [\n")
    with pytest.raises(ConfigError) as caught:
        load_server_config({}, sources)
    assert caught.value.file == str(sources.user)


DOCS = Path(__file__).parents[3] / "docs"

EXAMPLES = [
    (name, example)
    for name in ("hub", "language-servers", "refactoring", "trust")
    for example in re.findall(r"```yaml\n(.*?)```", (DOCS / f"{name}.md").read_text("utf-8"), re.DOTALL)
]


@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_the_examples_of_the_docs_are_valid_and_can_be_shown(sources: Sources, page: str, example: str) -> None:
    sources.user.write_text(example)
    loaded = load_server_config({}, sources)
    assert (loaded.problems, any(row.origin != "default" for row in describe(loaded))) == ([], True), page


def test_entries_of_mappings_in_groups_are_shown_one_by_one(sources: Sources) -> None:
    sources.user.write_text(
        "hub:\n  sharing: {notes: session, a.b: shared}\n  tools: {mcp__git__log: {hidden: true}}\n"
        "agents: {model_names: {sonnet: model-5}}\nprices: {model-1.5*: {input: 1, output: 2}}\n"
    )
    shown = {row.key: row.value for row in describe(load_server_config({}, sources)) if row.origin != "default"}
    assert (shown["hub.sharing.notes"], shown["hub.sharing.a.b"]) == ('"session"', '"shared"')
    assert json.loads(shown["hub.tools.mcp__git__log"])["hidden"] is True
    assert shown["agents.model_names.sonnet"] == '"model-5"'
    assert json.loads(shown["prices.model-1.5*"])["output"] == 2


def test_a_secret_is_neither_shown_nor_repeated_in_an_error(sources: Sources) -> None:
    sources.user.write_text("database_url: postgresql://me:hunter2@host/db\n")
    rows = {row.key: row for row in describe(load_server_config({}, sources))}
    assert rows["database_url"].value == "(set; hidden)"
    assert not any("hunter2" in text for row in rows.values() for text in row)
    other = load_server_config({}, with_environment(sources, serena_central_database_url="postgresql://me@host/db"))
    assert {row.key: row.value for row in describe(other)} == {row.key: row.value for row in rows.values()}
    assert values_of(other)["database_url"] == "postgresql://me@host/db"
    sources.user.write_text("database_url: mysql://me:hunter2@host/db\n")
    with pytest.raises(ConfigError) as foreign:
        load_server_config({}, sources)
    assert "hunter2" not in str(foreign.value)
    sources.user.write_text("database_url: [hunter2]\n")
    with pytest.raises(ConfigError) as caught:
        load_server_config({}, sources)
    assert "hunter2" not in str(caught.value)


SERENAS_FILE = """\
gui_log_window: false
web_dashboard: true
web_dashboard_open_on_launch: false
log_level: 20
trace_lsp_communication: false
tool_timeout: 240
excluded_tools: []
included_optional_tools: [restart_language_server]
base_modes:
default_modes: [editing]
ignored_paths: [vendor]
default_max_tool_answer_chars: 99000
ls_specific_settings: {go: {buildFlags: [-tags=x]}}
projects:
- /home/me/project
initial_prompt: none of the server's business
central_server_prot: 1
"""


def test_serenas_own_file_is_understood_and_its_other_keys_are_reported(sources: Sources) -> None:
    sources.user.write_text(SERENAS_FILE)
    loaded = load_server_config({}, sources)
    value = loaded.value
    assert (value.log_level, value.tool_timeout_s, value.max_answer_chars) == ("info", 240, 99000)
    assert value.ignored_paths == ["vendor"]
    assert value.language_servers == {"go": {"buildFlags": ["-tags=x"]}}
    assert value.projects == ["/home/me/project"]
    assert str(loaded.origins["language_servers.go"][0]) == f"{sources.user}:13"
    kinds = {problem.key: problem.kind for problem in loaded.problems}
    assert kinds["web_dashboard"] == kinds["initial_prompt"] == "ignored"
    assert kinds["central_server_prot"] == "unknown"
    assert "did you mean central_server_port?" in str(loaded.problems[-1])


def test_an_encoding_is_one_that_files_are_written_in(sources: Sources, root: Path) -> None:
    server = load_server_config({}, sources)
    file = root / ".serena/project.yml"
    for name in ("latin-1", "utf-16", "UTF8", "shift_jis", "cp037"):
        file.write_text(f"encoding: {name}\n")
        assert load_project_config(root, server, sources=sources).value.encoding == name
    for name in ("utf-88", "base64", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"):
        file.write_text(f"encoding: {name}\n")
        loaded = load_project_config(root, server, sources=sources)
        assert (loaded.value.encoding, [problem.key for problem in loaded.problems]) == (None, ["encoding"]), name


def test_a_projects_layers_stand_on_the_servers(sources: Sources, root: Path, tmp_path: Path) -> None:
    home = tmp_path / "serena-home"
    home.mkdir()
    sources.user.write_text("encoding: latin-1\ntool_timeout_s: 1\nexcluded_tools: [a]\n")
    (home / "serena_config.yml").write_text("tool_timeout_s: 2\nexcluded_tools: [b]\n")
    (root / ".claude/.serena/serena_config.yml").write_text("tool_timeout_s: 3\n")
    (root / ".serena/project.yml").write_text("name: shop\nlanguage: go\ntool_timeout_s: 4\nexcluded_tools: [c]\n")
    server = load_server_config({}, sources)

    loaded = load_project_config(root, server, sources=with_environment(sources, serena_home=str(home)))
    assert (loaded.value.project_name, loaded.value.languages, loaded.value.encoding) == ("shop", ["go"], "latin-1")
    assert (loaded.value.tool_timeout_s, loaded.value.excluded_tools) == (4, ["a", "b", "c"])
    assert str(loaded.origins["encoding"][0]) == f"{sources.user}:1"
    assert str(loaded.origins["project_name"][0]) == f"{root}/.serena/project.yml:1"
    assert loaded.problems == []

    (root / ".serena/project.local.yml").write_text("tool_timeout_s: 5\n")
    assert load_project_config(root, server, sources=sources).value.tool_timeout_s == 5


def test_serena_home_counts_for_all_projects_unless_it_is_another_repositorys(
    sources: Sources, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "serena_config.yml").write_text("encoding: utf-16\n")
    environment = with_environment(sources, serena_home=str(tmp_path))
    assert (
        load_project_config(root, load_server_config({}, environment), sources=environment).value.encoding == "utf-16"
    )
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / "settings").mkdir()
    (other / "settings/serena_config.yml").write_text("encoding: utf-16\n")
    environment = with_environment(sources, serena_home=str(other / "settings"))
    server = load_server_config({}, environment)
    found = [load_project_config(at, server, sources=environment).value.encoding for at in (root, other, other / "sub")]
    assert found == [None, "utf-16", "utf-16"]
    assert serena_home(environment.environment) == Path.home() / ".serena"
    assert serena_home({"SERENA_HOME": str(tmp_path)}) == tmp_path


def test_what_a_super_repo_commits_counts_for_its_modules_below_their_own(sources: Sources, root: Path) -> None:
    module = root / "modules/api"
    (module / ".serena").mkdir(parents=True)
    (module / ".serena/project.yml").write_text("tool_timeout_s: 4\n")
    (root / ".claude/.serena/serena_config.yml").write_text("tool_timeout_s: 3\nencoding: latin-1\n")
    server = load_server_config({}, sources)
    settings = load_project_config(module, server, around=root, sources=sources).value
    assert (settings.tool_timeout_s, settings.encoding) == (4, "latin-1")
    assert load_project_config(module, server, sources=sources).value.encoding is None


def test_the_users_file_is_not_read_as_a_projects(tmp_path: Path, root: Path) -> None:
    sources = Sources(tmp_path / "etc.yml", tmp_path / "serena_config.yml", {"SERENA_HOME": str(tmp_path)})
    sources.user.write_text("central_server_port: 5\n")
    assert load_project_config(root, load_server_config({}, sources), sources=sources).problems == []


def test_server_wide_keys_in_a_project_are_reported_and_ignored(sources: Sources, root: Path) -> None:
    (root / ".serena/project.yml").write_text("central_server_port: 1\npool: {idle_ttl_s: 1}\nread_only: true\n")
    loaded = load_project_config(root, load_server_config({}, sources), sources=sources)
    assert [(problem.kind, problem.key) for problem in loaded.problems] == [
        ("ignored", "central_server_port"),
        ("ignored", "pool"),
    ]
    assert loaded.value.read_only


@pytest.mark.parametrize(("server_says", "project_says"), [(True, False), (False, True), (True, True), (False, False)])
def test_a_project_can_forbid_writing_and_never_allow_it(
    sources: Sources, root: Path, server_says: bool, project_says: bool
) -> None:
    sources.user.write_text(f"read_only: {server_says}\n")
    (root / ".serena/project.yml").write_text(f"read_only: {project_says}\n")
    loaded = load_project_config(root, load_server_config({}, sources), sources=sources)
    assert loaded.value.read_only == (server_says or project_says)


def test_what_is_local_can_undo_what_the_project_forbids(sources: Sources, root: Path) -> None:
    (root / ".serena/project.yml").write_text("read_only: true\n")
    (root / ".serena/project.local.yml").write_text("read_only: false\n")
    assert not load_project_config(root, load_server_config({}, sources), sources=sources).value.read_only


@pytest.mark.parametrize("text", ["a: [\n", "\x00", "- list\n", "languages: 7\n", "tool_timeout_s: -1\n"])
def test_a_broken_project_file_is_a_problem_and_no_failure(sources: Sources, root: Path, text: str) -> None:
    (root / ".serena/project.yml").write_text(text)
    loaded = load_project_config(root, load_server_config({}, sources), sources=sources)
    assert loaded.value == ProjectSettings()
    assert [problem.kind for problem in loaded.problems] == ["wrong"]
    assert str(root / ".serena/project.yml") in str(loaded.problems[0])


def test_a_file_of_something_else_makes_a_bounded_number_of_problems(sources: Sources, root: Path) -> None:
    (root / ".serena/project.yml").write_text("".join(f"key{n}: 1\n" for n in range(5000)))
    assert len(load_project_config(root, load_server_config({}, sources), sources=sources).problems) == 100


def with_its_keys(text: str) -> str:
    """The template after a person removed the mark before every key."""
    return re.sub(r"^#((?:  )?\w+:.*)$", r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize("model", [ServerSettings, ProjectSettings])
def test_the_template_holds_every_key_with_its_default(model: type[ServerSettings] | type[ProjectSettings]) -> None:
    text = template(model)
    assert yaml.safe_load(text) is None
    values = yaml.safe_load(with_its_keys(text))
    flat = {
        key: value
        for name, item in values.items()
        for key, value in (
            {f"{name}.{sub}": value for sub, value in item.items()} if isinstance(item, dict) and item else {name: item}
        ).items()
    }
    assert flat == {key: setting.default for key, setting in settings_of(model).items()}


def test_a_template_without_its_marks_loads_without_a_problem(sources: Sources) -> None:
    sources.user.write_text(with_its_keys(template()))
    loaded = load_server_config({}, sources)
    assert (loaded.value, loaded.problems) == (ServerSettings(), [])


def test_every_row_tells_value_origin_and_what_it_is_for(sources: Sources) -> None:
    sources.user.write_text("pool:\n  max_calls: 7\nlanguage_servers:\n  python: {server: ty}\n")
    loaded = load_server_config({}, sources)
    rows = {row.key: row for row in describe(loaded)}
    assert rows["pool.max_calls"][1:3] == ("7", f"{sources.user}:2")
    assert rows["language_servers.python"][1:3] == ('{"server": "ty"}', f"{sources.user}:4")
    assert all(row.description for row in rows.values())
    assert get(loaded.value, "pool.max_calls") == 7


SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk: [secret\n"


@pytest.mark.parametrize(
    "file", [".serena/project.yml", ".serena/project.local.yml", ".claude/.serena/serena_config.yml"]
)
@pytest.mark.parametrize("whole_folder", [False, True])
def test_a_file_of_the_repository_that_is_a_link_out_of_it_is_neither_read_nor_quoted(
    root: Path, sources: Sources, tmp_path: Path, file: str, whole_folder: bool
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / Path(file).name).write_text(SECRET)
    link, target = (root / file).parent if whole_folder else root / file, outside
    if whole_folder:
        link.rmdir()
    else:
        target = outside / link.name
    link.symlink_to(target)
    found = load_project_config(root, load_server_config({}, sources), sources=sources)
    told = [str(problem.error()) for problem in found.problems]
    assert told
    assert all("symlink out of" in one for one in told)
    assert not [one for one in told if "KEY" in one or "secret" in one]


def test_a_super_repo_that_links_its_settings_out_is_refused_for_its_modules_too(
    root: Path, sources: Sources, tmp_path: Path
) -> None:
    around = tmp_path / "super"
    (around / ".claude" / ".serena").mkdir(parents=True)
    (tmp_path / "key").write_text(SECRET)
    (around / ".claude" / ".serena" / "serena_config.yml").symlink_to(tmp_path / "key")
    found = load_project_config(root, load_server_config({}, sources), around=around, sources=sources)
    assert ["symlink out of" in str(problem.error()) for problem in found.problems] == [True]


def test_a_file_of_the_repository_that_is_a_link_inside_it_is_read(root: Path, sources: Sources) -> None:
    (root / "shared.yml").write_text("project_name: shared\n")
    (root / ".serena" / "project.yml").symlink_to("../shared.yml")
    assert load_project_config(root, load_server_config({}, sources), sources=sources).value.project_name == "shared"


def test_the_users_own_file_may_be_a_link(sources: Sources, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.yml").write_text("central_server_port: 1002\n")
    sources.user.symlink_to(tmp_path / "dotfiles.yml")
    assert load_server_config({}, sources).value.central_server_port == 1002


def test_what_yaml_reads_as_false_is_off_where_that_is_a_choice() -> None:
    known = settings_of(ServerSettings)
    assert known["auto_install"].convert(value=False) == "off"
    with pytest.raises(msgspec.ValidationError):
        known["auto_install"].convert(value=True)
    with pytest.raises(msgspec.ValidationError):
        known["log_level"].convert(value=False)
