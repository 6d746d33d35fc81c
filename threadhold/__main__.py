"""The command `threadhold`, also as `python -m threadhold`."""

import gc
import os
import sys

# Garbage collection during imports takes a fifth of the start time and frees nothing.
# `threadhold.host` enables it again.
gc.disable()


def _forget_working_directory() -> None:
    """Remove the working directory, which `python -m` puts first on `sys.path`.

    The `threadhold` script does not add it either. In a checkout of this repository, its packages
    `my_agent` and `server` would shadow a project's own.
    """
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]


def main() -> None:
    """Run the command line."""
    if sys.platform == "win32":
        # The import below fails with the same words, after many lines of a traceback.
        sys.exit("Threadhold runs on Linux and macOS. On Windows, use WSL 2 or a container.")
    from threadhold.cli import main as commands

    commands()


if __name__ == "__main__":
    if sys.platform != "win32":
        # Import first: in a checkout without an installation, the package is in this directory.
        import threadhold.cli  # noqa: F401

    _forget_working_directory()
    main()
