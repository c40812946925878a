"""Tools that return guidance: instructions, onboarding, and questions for self-review.

The texts lie in `prompts/`; they are short, because every one of them is paid for by somebody's context.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from serena_central.core.errors import SerenaCentralError, listed
from serena_central.core.quoting import framed, quoted
from serena_central.projects.project import Project
from serena_central.tools.catalogue import tool
from serena_central.tools.context import ToolCall
from serena_central.tools.modules import introduction

PROMPTS = Path(__file__).with_name("prompts")

MOST_CHARS = 2500
"""Of the initial instructions, where a project's own prompt and memories leave that much: every session pays for it."""

LEAST_ON_MODULES = 600
"""Characters that the super-repo's modules get however long the rest is."""


@cache
def prompt(name: str) -> str:
    """One of our texts."""
    return (PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


@tool("How to use these tools")
async def initial_instructions(call: ToolCall) -> str:
    """How to use these tools. Read it once at the start of a conversation."""
    offer, session = call.services.offer, call.session
    parts = [prompt("instructions"), offer.context(session).prompt, *(mode.prompt for mode in offer.modes(session))]
    active = session.active_project
    if active is not None:
        parts.append(f"Active project: {quoted(active.name)}, {quoted(active.root)}.")
        holders, project = call.services.held_elsewhere.by, call.services.projects.opened(active.root)
        if holders is not None:
            try:
                parts += await holders.introduced(session, active.root)
            except SerenaCentralError as error:  # the rest holds for whatever else the session works on
                call.note(f"What {quoted(active.name)} says itself is missing: {error}")
        elif project is not None:
            parts += await introduction_of(project)
    repo = offer.super_repo(session)
    if repo is not None:
        spent = sum(len(part) + 1 for part in parts)
        parts.insert(1, introduction(repo, max(MOST_CHARS - spent, LEAST_ON_MODULES)))
    return "\n".join(part.strip() for part in parts if part.strip())


async def introduction_of(project: Project) -> list[str]:
    """What a project says to a session that works on it."""
    names = (await project.memories.names()).names
    return [f"Memories: {listed(names)}." if names else "", project_prompt(project)]


def project_prompt(project: Project) -> str:
    """What a project's settings say to every session that works on it, as that project's own text; empty: nothing."""
    text = project.settings.initial_prompt.strip()
    return framed(text, f"The initial_prompt of the project {quoted(project.name)}") if text else ""


@tool("Check onboarding", about="notes")
async def check_onboarding_performed(call: ToolCall, target: Project) -> str:
    """Whether the project has memories. Call it after activating a project."""
    return onboarding_state((await target.memories.names()).names)


def onboarding_state(memories: Sequence[str]) -> str:
    """What the names of a project's memories say about it."""
    if memories:
        return f"Onboarding is done. Memories: {listed(memories)}. Read those that are relevant to the task."
    return "Onboarding has not been done: there are no memories. Call onboarding if you will work here for a while."


@tool("Onboard to the project", about="notes")
async def onboarding(call: ToolCall, target: Project) -> str:
    """Instructions for exploring a project that has no memories yet."""
    return f"Project: {quoted(target.name)}, {quoted(target.root)}.\n{prompt('onboarding')}"


@tool("Prepare for a new conversation")
async def prepare_for_new_conversation(call: ToolCall) -> str:
    """Instructions for saving state before a conversation ends, so that the next one can continue."""
    return prompt("new_conversation")


@tool("Review what was found")
async def think_about_collected_information(call: ToolCall) -> str:
    """Questions to ask yourself after a search."""
    return prompt("collected_information")


@tool("Review the task", also=("think_about_task",))
async def think_about_task_adherence(call: ToolCall) -> str:
    """Questions to ask yourself before you change code."""
    return prompt("task_adherence")


@tool("Review whether the task is done", also=("think_about_verification",))
async def think_about_whether_you_are_done(call: ToolCall) -> str:
    """Questions to ask yourself before you say that you are done."""
    return prompt("done")
