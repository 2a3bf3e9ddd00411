"""`headrace completion`: what a shell needs to complete commands, options, topics, groups and files."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from headrace.cli.session import Session, as_json_option

SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@as_json_option
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands:  headrace completion bash

    Nothing is installed; this is how a shell is told:

    \b
      bash   eval "$(headrace completion bash)"   in ~/.bashrc
      zsh    eval "$(headrace completion zsh)"   in ~/.zshrc, after compinit
      fish   headrace completion fish > ~/.config/fish/completions/headrace.fish

    Topics, groups, brokers and settings complete too, if the cluster answers within a second.
    """  # noqa: D301  \b is how click is told to leave lines as they are
    known = get_completion_class(shell)
    assert known is not None, shell
    script = known(context.find_root().command, {}, "headrace", "_HEADRACE_COMPLETE").source()
    context.ensure_object(Session).show({"shell": shell, "script": script}, script.rstrip())
