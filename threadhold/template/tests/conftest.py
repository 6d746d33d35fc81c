"""Lets tests import the project from any folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
