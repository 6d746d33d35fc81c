"""`python -m bench.vectors`: measure a search among many passages while another process adds some.

The vectors are random around 2,000 topics. The database is `--database-url`, by default a new
SQLite file. The embedding of the question is not included.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import batched  # type: ignore[attr-defined]
