"""Reads the settings of a root, including what the super-repo around it says, as far as a person trusts them."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path

from serena_central.claude_config.locations import Locations
from serena_central.config.layers import Loaded
from serena_central.config.load import load_project_config, settings_files
from serena_central.config.settings import ProjectSettings, ServerSettings, SharedSettings
from serena_central.core.places import Places
from serena_central.files.path_watch import PathWatch
from serena_central.projects.claude_settings import ClaudeSettings
from serena_central.projects.superrepo.configuration import SuperRepo
from serena_central.projects.superrepo.lookup import SuperRepos
from serena_central.projects.trust.agent_source import AgentFiles
from serena_central.projects.trust.approvals import Approvals
from serena_central.projects.trust.claude_source import ClaudeFiles
from serena_central.projects.trust.trust_decisions import Configuration, Policy, Source, Trust


class RootSettings:
    """Belongs to the event loop's thread, or to a command. Reads small files when they have changed."""

    def __init__(
        self,
        loaded: Loaded[ServerSettings],
        places: Places,
        *,
        changed: Callable[[SuperRepo], None] = lambda _repo: None,
        watch: PathWatch | None = None,
        locations: Locations | None = None,
    ) -> None:
        """`changed` is called for every super-repo that was reloaded. Without `watch` every question reads the disk."""
        self._loaded = loaded
        self._loadings = 0
        self._watch = watch or PathWatch(watches=False)
        self._trust_file = str(places.trust_file)
        self.claude = ClaudeSettings(locations, self._watch)
        approvals = Approvals(places.trust_file)
        sources: list[Source] = [
            Configuration(self._super_repo_of),
            ClaudeFiles(self.claude.locations),
            AgentFiles(),
        ]
        self.trust = Trust(approvals, loaded.value.trusted_roots, sources, self._policy)
        self.super_repos = SuperRepos(
            lambda root: load_project_config(root, self._loaded, trusts=self.trust.allows),
            changed=changed,
            stamp=self.trust.file_stamp,
            watch=self._watch,
        )

    @property
    def loaded(self) -> Loaded[ServerSettings]:
        """The server's settings. Others take effect in each project with its next call."""
        return self._loaded

    @loaded.setter
    def loaded(self, loaded: Loaded[ServerSettings]) -> None:
        before, self._loaded = self._loaded.value, loaded
        if any(getattr(before, name) != getattr(loaded.value, name) for name in SharedSettings.__struct_fields__):
            self._loadings += 1  # each project is opened again

    def read(self, root: Path) -> Loaded[ProjectSettings]:
        """What the settings say of a real root; what has no effect is among the problems."""
        repo = self.super_repos.of(root)
        return load_project_config(root, self.loaded, around=repo.root if repo else None, trusts=self._trusts)

    def stamp(self, root: Path) -> Hashable:
        """What differs when `read` may answer otherwise. Costs some microseconds."""
        files = self._watch.get(("settings", root), lambda: self._files(root), lambda: self._stamp(root))
        return self._loadings, files

    def _policy(self, root: Path) -> Policy:
        found = self.claude.of(root)
        fixed = found.managed("trust") if found is not None else None
        return Policy(fixed[0], f"managed settings ({fixed[1]})") if fixed else Policy(self.loaded.value.trust)

    def _stamp(self, root: Path) -> Hashable:
        return self.trust.stamp(root), self.claude.access_key(root)

    def _files(self, root: Path) -> Iterator[str]:
        """All that the stamp depends on, there or not."""
        yield self._trust_file
        yield from self.claude.locations.files(root)
        for folder in (root, *root.parents):
            yield from map(str, settings_files(folder))

    def _super_repo_of(self, root: Path) -> SuperRepo | None:
        return self.super_repos.of(root)

    def _trusts(self, root: Path, texts: Mapping[str, str]) -> bool:
        """All that the root brings, and what of it was just read."""
        return self.trust.is_trusted(root) and self.trust.allows(root, texts)
