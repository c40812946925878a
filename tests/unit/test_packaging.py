"""What the image and its documentation name is what the server reads."""

import ast
import re
import tomllib
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from serena_central.config.load import Sources, load_server_config

CHECKOUT = Path(__file__).parents[2]


def test_the_variables_of_the_image_are_settings_with_allowed_values(tmp_path: Path) -> None:
    image = dict(re.findall(r"^\s*(?:ENV )?(SERENA_CENTRAL_\w+)=(\S+)", (CHECKOUT / "Dockerfile").read_text(), re.M))
    compose = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())["services"]["serena-central"]
    given = {**compose["environment"], "SERENA_CENTRAL_ALLOWED_ROOTS": "/home/me/src"}
    for environment in (image, image | given):
        loaded = load_server_config({}, Sources(tmp_path / "none.yml", tmp_path / "none.yml", environment))
        assert loaded.problems == []
        assert loaded.value.allowed_roots
    assert loaded.value.central_server_host == "0.0.0.0"
    assert "serena-central" in loaded.value.central_server_names
    assert f"127.0.0.1:{loaded.value.central_server_port}:{loaded.value.central_server_port}" in compose["ports"]
    assert compose["read_only"] is True


def test_the_profile_of_a_team_starts_two_fronts_with_allowed_settings_and_valid_names(tmp_path: Path) -> None:
    """Their schema is compared by `make check-deploy`; nothing here runs a container."""
    services = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())["services"]
    team = {name: one for name, one in services.items() if one.get("profiles") == ["team"]}
    assert set(team) == {"front-1", "front-2", "node-1", "node-2", "postgres", "haproxy"}
    assert "profiles" not in services["serena-central"]
    balancer = team["haproxy"]["environment"]
    names = []
    for name, front in (("F1", team["front-1"]), ("F2", team["front-2"])):
        given = {key: interpolated(value) for key, value in front["environment"].items()}
        loaded = load_server_config({}, Sources(tmp_path / "none.yml", tmp_path / "none.yml", given))
        assert loaded.problems == []
        names.append(loaded.value.front_name)
        address = front["networks"]["team"]["ipv4_address"]
        assert balancer[f"SERENA_{name}"] == f"{address}:{loaded.value.central_server_port}"
        assert loaded.value.central_server_names == [interpolated(balancer["SERENA_NAME"])]
        assert front["command"][-1] == f"{team['node-1']['networks']['team']['ipv4_address']}:6379"
    assert names == re.findall(r"^    server (\w+) ", (CHECKOUT / "deploy/haproxy.cfg").read_text(), re.M)
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(team["front-1"]["build"]["args"]["EXTRAS"].split()) <= set(extras)


def interpolated(value: str) -> str:
    """As Compose does, with SERENA_PROJECTS alone set."""
    return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", lambda found: found[2] or "/home/me/src", value)


def test_what_the_image_is_built_from_reaches_its_build() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (CHECKOUT / "Dockerfile").read_text(), re.M)
    allowed = (CHECKOUT / ".dockerignore").read_text().splitlines()
    sources = {name for line in copied for name in line.split()}
    assert {f"!{name}" for name in sources} <= set(allowed)
    assert all((CHECKOUT / name).exists() for name in sources)


def test_every_package_that_is_imported_is_declared() -> None:
    """What another dependency happens to bring may be gone with its next version."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    declared = {
        canonicalize_name(Requirement(line).name)
        for lines in (project["dependencies"], *project["optional-dependencies"].values())
        for line in lines
    }
    named: dict[str, str] = {}
    for source in (CHECKOUT / "serena_central").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
            named.update({module: str(source.relative_to(CHECKOUT)) for module in modules})
    distributions = metadata.packages_distributions()
    undeclared = {
        module: where
        for module, where in named.items()
        if (top := module.partition(".")[0]) in distributions
        and top != "serena_central"
        and not declared & {canonicalize_name(name) for name in distributions[top]}
    }
    assert undeclared == {}
