"""`serena-central completion`: the script by which a shell completes commands, options and the names of tools."""

import click
from click.shell_completion import get_completion_class

PROGRAM = "serena-central"

EXAMPLES = """\b
Examples:
  eval "$(serena-central completion bash)"                    in ~/.bashrc
  eval "$(serena-central completion zsh)"                     in ~/.zshrc
  serena-central completion fish > ~/.config/fish/completions/serena-central.fish

Tool names and their options come from the running server.
"""


@click.command(epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL."""
    made = get_completion_class(shell)
    assert made is not None
    script = made(context.find_root().command, {}, PROGRAM, "_SERENA_CENTRAL_COMPLETE")
    click.echo(script.source())
