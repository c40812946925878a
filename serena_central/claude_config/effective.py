"""The effective settings of one root: all tiers merged, with origins, problems and rules."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from serena_central.claude_config.document import Document, as_list, as_object
from serena_central.claude_config.locations import Locations
from serena_central.claude_config.merge import Given, Layer, Merged, get, merge
from serena_central.claude_config.permissions import Permissions, SourcedRule
from serena_central.claude_config.problems import KeyPath, Place, Problem, Severity
from serena_central.claude_config.reading import Settings, read_settings
from serena_central.claude_config.rules import VERDICTS, parse_rule
from serena_central.claude_config.tiers import Tier, TierFile, tier_files
from serena_central.core.masking import (
    MASK,
    is_secret_header,
    is_secret_name,
    masked_output,
    masked_secret,
    masked_words,
)

_PRINTS_SECRET = ("apiKeyHelper", "headersHelper", "otelHeadersHelper")
"""Commands whose output is a secret."""


class Effective:
    """What counts in a root, as of one reading. Immutable."""

    def __init__(
        self, root: Path, locations: Locations, files: Sequence[Settings], *, kept: frozenset[Path] = frozenset()
    ) -> None:
        """`kept`: files that are broken now, of which the last good version is among `files`."""
        self.root = root
        self.locations = locations
        self.files = tuple(files)
        self.kept = kept
        self._documents = {str(one.file.path): one.document for one in files}

    @cached_property
    def merged(self) -> Merged:
        layers: list[Layer] = []
        for place, one in enumerate(self.files):
            if not one.file.rules_only:
                layers.append(Layer(str(one.file.path), (place,), (one.file.tier.strength, place), one.value))
        return merge(layers)

    def shown(self, path: KeyPath, value: Any) -> Any:
        """`shown` of the value at a key, or of one that it shadows."""
        names = ["", "", *(part for part in path if isinstance(part, str))]
        last = path[-1] if path else ""  # of settings that are empty
        before = get(self.value, (*path[:-1], last - 1)) if isinstance(last, int) and last else ""
        return shown(value, names[-1], before, names[-2])

    @property
    def value(self) -> dict[str, Any]:
        """What counts, by key."""
        return self.merged.value

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        found = [problem for one in self.files for problem in one.problems]
        second = self.locations.shadowed_user_folder
        if second is not None:
            place = Place(str(second))
            text = f"settings in this folder are not read, since {self.locations.user_folder} is used"
            found.append(Problem(Severity.NOTE, place, "", text, "join them there, or set CLAUDE_CONFIG_DIR"))
        return tuple(found)

    @cached_property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    @cached_property
    def permissions(self) -> Permissions:
        """The rules of all files. Where the managed tier says so, others' rules may only restrict."""
        managed_only = any(
            one.value.get("allowManagedPermissionRulesOnly") is True
            for one in self.files
            if one.file.tier is Tier.ENTERPRISE
        )
        rules = (rule for one in self.files for rule in _rules_of(one))
        return Permissions(
            self.root,
            self.locations.home,
            [rule for rule in rules if rule.verdict == "deny" or rule.tier is Tier.ENTERPRISE or not managed_only],
        )

    @cached_property
    def has_hooks(self) -> bool:
        """Whether any file but those of folders above the root has hooks, trusted or not."""
        return any(one.value.get("hooks") for one in self.files if not one.file.rules_only)

    @cached_property
    def has_session_hooks(self) -> bool:
        """Whether any of these hooks is for the start or the end of a session."""
        named = (as_object(one.value.get("hooks")) or {} for one in self.files if not one.file.rules_only)
        return any(hooks.get(event) for hooks in named for event in ("SessionStart", "SessionEnd"))

    def managed(self, key: str) -> tuple[Any, Place] | None:
        """What the managed tier fixes under a top-level key, and where it stands."""
        for one in reversed(self.files):
            if one.file.tier is Tier.ENTERPRISE and key in one.value:
                return one.value[key], one.document.place((key,))
        return None

    def place_of(self, given: Given) -> Place:
        """Where a value of a layer stands."""
        document: Document | None = self._documents.get(given.layer)
        return document.place(given.path) if document else Place(given.layer)

    def tier_of(self, given: Given) -> Tier:
        return next(one.file.tier for one in self.files if str(one.file.path) == given.layer)

    def leaves(self) -> list[tuple[KeyPath, Any, tuple[Given, ...]]]:
        """Every leaf: its path, what counts, and who gave it, the one that counts first."""
        return [(path, get(self.value, path), given) for path, given in self.merged.origins.items()]

    def environment(self, *, trusted: bool) -> dict[str, Any]:
        """The settings' `env`; of a repository that is not `trusted` nothing. Values may be `Resolved`."""
        found: dict[str, Any] = {}
        for one in sorted(self.files, key=lambda one: one.file.tier.strength):
            if not one.file.rules_only and (trusted or one.file.tier.trusted):
                found.update(one.value.get("env", {}))
        return found

    def of_tier(self, tier: Tier) -> dict[str, Any]:
        """What one tier alone says."""
        files = [one for one in self.files if one.file.tier is tier and not one.file.rules_only]
        return merge(Layer(str(one.file.path), (place,), (place,), one.value) for place, one in enumerate(files)).value


def _rules_of(one: Settings) -> Iterable[SourcedRule]:
    permissions: Mapping[str, list[str]] = one.value.get("permissions", {})
    for verdict in VERDICTS:
        if one.file.rules_only and verdict == "allow":
            continue
        held = as_list(get(one.document.value, ("permissions", verdict))) or []
        places = {text: place for place, text in reversed(list(enumerate(held))) if isinstance(text, str)}
        for text in permissions.get(verdict, ()):
            at = one.document.place(("permissions", verdict, places.get(text, 0)))
            yield SourcedRule(verdict, parse_rule(text), one.file.tier, at, one.file.base)


def load(root: Path, locations: Locations | None = None) -> Effective:
    """Reads all tiers of a root. Blocks for small files; never raises for what stands in them."""
    where = locations or Locations()
    return Effective(root, where, [found for file in tier_files(root, where) if (found := _read(file, where))])


def _read(file: TierFile, locations: Locations) -> Settings | None:
    return read_settings(file, locations.environment)


def shown(value: Any, name: str | int = "", before: Any = "", parent: str | int = "") -> Any:
    """A copy for people and programs that display it: resolved values stand as their templates, and secrets are masked,
    by their form, by the `name` that they have (below `parent`) or by the option `before` them in a command line."""
    if (held := as_object(value)) is not None:
        return {key: shown(inside, key, "", name) for key, inside in held.items()}
    if (items := as_list(value)) is not None:
        return [shown(inside, name, previous, parent) for previous, inside in zip(["", *items], items, strict=False)]
    is_count = str(name).casefold().endswith("tokens") and str(value).isdigit()  # MAX_THINKING_TOKENS names no secret
    is_named = is_secret_header(str(name)) if parent == "headers" else is_secret_name(str(name))
    is_secret = is_named and value not in (None, "", True, False) and not is_count
    if not isinstance(value, str):
        return MASK if is_secret else value
    text = masked_output(str(value)) if name in _PRINTS_SECRET else str(value)
    return masked_secret(text) if is_secret else masked_words([str(before), text])[-1]
