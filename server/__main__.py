"""`python -m server` is the command `threadhold`."""

import sys
from pathlib import Path

# The folder it is run from comes first otherwise, and with it a served project's own `hooks.py`.
sys.path.insert(0, str(Path(__file__).parents[1]))

from server.cli import main

if __name__ == "__main__":
    main()
