"""The name under which a process claims runs."""

import subprocess
import sys

from tests.support.processes import environment

FORKED = """
import os
from langgraph_runtime_sql.ops.runs import claim

reads, writes = os.pipe()
if not os.fork():
    os.write(writes, claim.OWNER.encode())
    os._exit(0)
os.wait()
print(claim.OWNER, os.read(reads, 100).decode())
"""


def test_a_forked_process_has_a_name_of_its_own() -> None:
    """A server that forks its workers after its imports, as gunicorn does with `--preload`."""
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    parent, child = done.stdout.split()
    assert len(parent) == len(child) == 32
    assert parent != child
