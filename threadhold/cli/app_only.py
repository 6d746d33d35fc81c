"""Commands of the example application: say where they are, because the package has only the library."""

import click

NAMES = ("ingest",)


def elsewhere(name: str) -> click.Command:
    """Return a hidden command that says how to run the one of the application."""

    def run() -> None:
        raise click.UsageError(
            f"`{name}` is a command of the example application, whose graphs are not in this "
            f"package. Run `python -m server {name}` in a checkout of the repository."
        )

    # Whatever its arguments are, and also with --help.
    settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    return click.Command(name, callback=run, hidden=True, context_settings=settings)


COMMANDS = tuple(map(elsewhere, NAMES))
