"""Errors that nobody expected, in work that stands beside other work: that goes on."""

from pathlib import Path

import anyio
import pytest

from serena_central.core.places import Places
from serena_central.projects.editing import edit_effects
from serena_central.projects.warming.project_warm_up import Warmed
from serena_central.projects.warming.warm_up_jobs import WarmUp
from serena_central.projects.warming.warm_up_roots import Chosen
from tests.support.central import running_parts, session_of

pytestmark = pytest.mark.anyio


async def test_an_edit_is_told_although_what_it_meets_could_not_be_looked_at_while_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, file = tmp_path / "shop", tmp_path / "shop/cart.py"
    (root / ".git").mkdir(parents=True)
    file.write_text("def total():\n    return 1\n")
    span, failed = edit_effects.changed_span, list[str]()

    def fails_once(old: str, new: str) -> tuple[int, int, int]:
        if not failed:
            failed.append(old)
            raise RuntimeError("broken")
        return span(old, new)

    monkeypatch.setattr(edit_effects, "changed_span", fails_once)
    async with running_parts(tmp_path) as parts:
        session, where = session_of(parts), {"project": str(root), "relative_path": "cart.py"}
        await parts.caller.call(session, "get_symbols_overview", where)
        edit = {"name_path": "total", "body": "def total():\n    return 2\n"}
        answer = await parts.caller.call(session, "replace_symbol_body", {**where, **edit})
    assert failed
    assert '"lines_added":1' in answer.blocks[0]
    assert "return 2" in file.read_text()


class Fails:
    """Fails where it is asked what a folder means, and warms up."""

    def __init__(self) -> None:
        self.asked = anyio.Event()

    async def choose(self, *_arguments: object, **_named: object) -> Chosen:
        self.asked.set()
        raise RuntimeError("broken")

    async def warm(self, root: Path) -> list[Warmed]:
        return [Warmed(root.name, "python", 0.0, success=True)]


async def test_a_session_of_which_the_folder_can_not_be_told_ends_no_warm_up(tmp_path: Path) -> None:
    places, fails = Places(tmp_path / "home"), Fails()
    places.create()
    warm_up = WarmUp(fails, places, memory_budget_bytes=1 << 30)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            await tasks.start(warm_up.run)
            warm_up.start_at(tmp_path, "s-1")
            await fails.asked.wait()
            job = warm_up.start(Chosen([tmp_path], tmp_path))
            async for _message in job.follow():
                pass
            assert [one.success for one in job.modules] == [True]
            tasks.cancel_scope.cancel()
