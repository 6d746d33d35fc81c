"""Command line: the commands of `threadhold`, also for programs that are built on it.

main = command_line(Program(name="python -m my_app", ...))
"""

from collections.abc import Iterable

import click

from langgraph_runtime_sql.progress import Progress
from threadhold import __version__
from threadhold.cli import app_only, commands
from threadhold.cli.dockerfile import dockerfile
from threadhold.cli.group import ProgramGroup, load_settings, pass_program
from threadhold.cli.identity import revoke, token
from threadhold.cli.init import init
from threadhold.cli.keys import keys
from threadhold.cli.options import database_option
from threadhold.cli.own import THREADHOLD
from threadhold.cli.progress import ProgressLine
from threadhold.program import Program

__all__ = [
    "THREADHOLD",
    "Program",
    "Progress",
    "ProgressLine",
    "command_line",
    "database_option",
    "load_settings",
    "main",
    "pass_program",
]


def command_line(program: Program, more: Iterable[click.Command] = ()) -> ProgramGroup:
    """Make the command line of a program.

    Args:
        program: The program.
        more: The program's own commands.
    """
    group = ProgramGroup(
        program.name,
        [*commands.ALL, keys, token, revoke, *more],
        help="The LangGraph Platform held inside your own app.",
        context_settings={"obj": program},
    )
    return click.version_option(__version__, prog_name="threadhold")(group)


main = command_line(THREADHOLD, [init, dockerfile, *app_only.COMMANDS])
