"""The command `python -m server`."""

import gc
import sys
from pathlib import Path

# Garbage collection during imports takes a fifth of the start time and frees nothing.
# `threadhold.host` enables it again.
gc.disable()

# Before the working directory, where a served project may have its own `hooks.py`.
sys.path.insert(0, str(Path(__file__).parents[1]))

from server.cli import main

if __name__ == "__main__":
    main()
