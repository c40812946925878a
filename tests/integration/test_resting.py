"""When a server rests: not while something goes on of which nothing is heard for long."""

from pathlib import Path

from serena_central.core.rest import rest
from tests.support.central import running_parts
from tests.support.scripted import scripted_project, scripted_ty


async def test_it_does_not_rest_while_the_background_uses_a_language_server(tmp_path: Path) -> None:
    scripted_ty(tmp_path)
    root = scripted_project(tmp_path)
    async with running_parts(tmp_path) as central:
        project = await central.projects.open(root)
        used: list[bool] = []

        async def use(_: object) -> None:
            used.append(rest.is_busy())

        await project.indexer.settle()
        await project.languages.ask("cart.py", use)
        assert used == [True]
