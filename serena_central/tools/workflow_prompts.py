"""Workflows that a person starts by name in a client: their titles, arguments and texts."""

from collections.abc import Mapping
from typing import NamedTuple

from serena_central.core.errors import InvalidArguments
from serena_central.tools.guidance import prompt

ARGUMENT_CHARS = 4000
"""Of one argument."""


class Argument(NamedTuple):
    """One argument of a prompt."""

    name: str
    description: str
    required: bool = False


class WorkflowPrompt(NamedTuple):
    """`texts` are names of ours, in the order in which they are sent."""

    name: str
    title: str
    description: str
    texts: tuple[str, ...]
    arguments: tuple[Argument, ...] = ()

    def text(self, given: Mapping[str, str]) -> str:
        """The message that the model gets.

        Raises:
            InvalidArguments
        """
        known = [argument.name for argument in self.arguments]
        for argument in self.arguments:
            if argument.required and not given.get(argument.name, "").strip():
                raise InvalidArguments(f"{self.name}: {argument.name} is required ({argument.description}).")
        text = "\n".join(map(prompt, self.texts))
        extra: list[str] = []
        for name in known:
            value = given.get(name, "").strip()[:ARGUMENT_CHARS]
            if f"{{{name}}}" in text:
                text = text.replace(f"{{{name}}}", value)
            elif value:
                extra.append(f"{name}: {value}")
        return "\n".join([text, *extra])


PROJECT = Argument("project", "name or path of the project; default: the one you work in")

WORKFLOWS = {
    one.name: one
    for one in (
        WorkflowPrompt(
            "onboarding",
            "Get to know the project",
            "Explores a project and saves what later sessions need as memories.",
            ("onboarding",),
            (PROJECT,),
        ),
        WorkflowPrompt(
            "plan_refactoring",
            "Plan a refactoring in waves",
            "Orders a refactoring's changes by dependency, with checks after each wave.",
            ("plan_refactoring",),
            (
                Argument("goal", "what is to be changed, and why", required=True),
                Argument("symbol", "name path of the symbol that it begins with"),
                Argument("path", "file or folder that it is limited to"),
                PROJECT,
            ),
        ),
        WorkflowPrompt(
            "review_edits",
            "Review my edits",
            "Checks this session's changes: errors, references, tests, leftovers.",
            ("review_edits", "done"),
            (PROJECT,),
        ),
        WorkflowPrompt(
            "hand_over",
            "Hand over to the next conversation",
            "Saves what the next conversation needs to go on.",
            ("new_conversation",),
            (PROJECT,),
        ),
    )
}
