"""`serena-central hook`: the hooks of `serena-hook`, for those who look for them here. Clients start that one: it is
quicker."""

import click

from serena_central.hook.main import run


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Hooks for coding agents."""
    run("serena-central hook", list(arguments))
