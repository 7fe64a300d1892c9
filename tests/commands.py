"""How tests run a command."""

from haptera.cli import main


def call(*arguments):
    """Run a command in this process; its exit code."""
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code or 0
    return 0
