"""The command `threadhold`, also as `python -m threadhold`."""

import gc
import os
import sys

# Imported modules stay for good, so collecting garbage meanwhile takes a fifth of the start and
# finds none. `threadhold.host` turns the collector on again.
gc.disable()


def _forget_working_directory() -> None:
    """Remove the working directory, which `python -m` puts first on `sys.path`.

    The `threadhold` script does without it, and so does stock: a project's folder comes last. In a
    checkout of this repository the packages `my_agent` and `server` would hide a project's own.
    """
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]


def main() -> None:
    """Run the command line."""
    from threadhold.cli import main as commands

    commands()


if __name__ == "__main__":
    # Before the directory goes: without an installation the packages come from there.
    import threadhold.cli  # noqa: F401

    _forget_working_directory()
    main()
