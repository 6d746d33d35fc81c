"""`python -m server`: the commands of this app."""

import gc
import sys
from pathlib import Path

# Nothing that is imported ever goes away, so looking for garbage meanwhile takes a fifth
# of the start and finds none. Whoever serves turns it on again (`threadhold.host`).
gc.disable()

# The folder it is run from comes first otherwise, and with it a served project's own `hooks.py`.
sys.path.insert(0, str(Path(__file__).parents[1]))

from server.cli import main

if __name__ == "__main__":
    main()
