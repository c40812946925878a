"""The policy for roots: a table of folders that are no projects, and whose word opens the others."""

from pathlib import Path

import pytest

from serena_central.core.errors import ProjectRefused
from serena_central.projects.root_policy import PERSON, Opener, RootPolicy

HOME = Path("/home/me")
OWN = Path("/srv/central")

AGENT = Opener()


def policy(*allowed: str) -> RootPolicy:
    return RootPolicy(home=HOME, own=[OWN], allowed=[Path(one) for one in allowed])


REFUSED = [
    *("/", "/home", "/home/me", "/proc/1/cwd", "/sys", "/dev/shm/x", "/etc", "/etc/cron.d"),
    *("/srv/central", "/srv/central/cache", "/home/me/.serena", "/home/me/.ssh", "/home/me/.ssh/deep/er"),
    *("/home/me/.config/git", "/home/me/.gnupg", "/home/me/.aws", "/home/me/.claude", "/home/me/.claude/hooks"),
    *("/home/me/.codex", "/home/me/.vscode/extensions", "/home/me/.local/bin", "/home/me/.codex/worktrees"),
    *("/src/app/.git", "/src/app/.git/hooks", "/src/app/.GIT/x", "/src/app/.git /x", "/src/app/GIT~1", "/src/.git/w/a"),
    *("/src/.g\u200cit/x", "/src/a\nb", "/src/\udce9"),
]

OTHERS = [
    *("/src/app", "/home/me/app", "/home/me/app/.config/x", "/srv/central2", "/etcetera", "/src/.github", "/src/git"),
    *("/home/me/.codex/worktrees/a1/app", "/home/me/.cursor/worktrees/app", "/home/you/.ssh"),
]
WIDER = [
    *(("/", "/etc"), ("/home/me", "/home/me/.ssh"), ("/src", "/src/app/.git"), ("/home/me", "/home/me"), ("/", "/")),
    *(("/home/me/.config/nvim", "/home/me/.config/git"), ("/srv", "/srv/central")),
]


@pytest.mark.parametrize("root", REFUSED)
def test_folders_of_others_are_no_projects_whoever_asks(root: str) -> None:
    with pytest.raises(ProjectRefused) as refused:
        policy().check(Path(root))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("root", OTHERS)
def test_others_are(root: str) -> None:
    policy().check(Path(root))


@pytest.mark.parametrize(
    ("allowed", "root"),
    [
        ("/home/me/.config/nvim", "/home/me/.config/nvim"),
        ("/home/me/.config", "/home/me/.config/nvim"),
        ("/etc/nginx", "/etc/nginx/sites"),
        ("/src/app/.git", "/src/app/.git/hooks"),
        ("/srv/central/x", "/srv/central/x"),
    ],
)
def test_allowed_roots_that_name_the_folder_itself_allow_it(allowed: str, root: str) -> None:
    policy(allowed).check(Path(root))


@pytest.mark.parametrize(("allowed", "root"), WIDER)
def test_a_wider_folder_in_allowed_roots_does_not(allowed: str, root: str) -> None:
    with pytest.raises(ProjectRefused):
        policy(allowed).check(Path(root))


def test_an_agent_opens_repositories_and_projects_and_where_its_client_works(tmp_path: Path) -> None:
    plain, repository, project = (tmp_path / name for name in ("plain", "repository", "project"))
    (plain / "deep").mkdir(parents=True)
    (repository / ".git").mkdir(parents=True)
    (project / ".serena").mkdir(parents=True)
    (project / ".serena/project.yml").touch()
    ours = policy()
    ours.check_opener(repository, AGENT)
    ours.check_opener(project, AGENT)
    ours.check_opener(plain, PERSON)
    ours.check_opener(plain, Opener(works_in=plain))
    ours.check_opener(plain, Opener(works_in=plain / "deep"))
    policy(str(tmp_path)).check_opener(plain, AGENT)
    for opener in (AGENT, Opener(works_in=tmp_path), Opener(works_in=repository)):
        with pytest.raises(ProjectRefused, match="The user can allow it with `serena-central serve --project"):
            ours.check_opener(plain, opener)
