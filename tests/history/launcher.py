"""Starts servers of one database, each a fork of this process, which has imported everything.

As tests/chaos/launcher.py, for several servers at once; it never waits for any of them.

    launcher.py                     the settings come from the environment
    < PORT LEASE                    > the process id; LEASE is how long a claim lasts, in seconds
"""

import os
import signal
import sys
import uuid

from langgraph_runtime_sql import leases, queue
from langgraph_runtime_sql.ops import run_claim
from server import serving
from server.app import create_app
from server.settings import Settings


def start(settings: Settings, port: int, lease: float) -> int:
    """Fork a server and return its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with open(f"server-{port}.log", "ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        # By this Postgres knows who writes.
        os.environ["PGAPPNAME"] = str(os.getpid())
        run_claim.OWNER = uuid.uuid4().hex
        run_claim.LEASE_SECONDS = leases.LEASE_SECONDS = lease
        queue.SWEEP_SECONDS = lease / 3
        serving.serve(settings, "127.0.0.1", port)
        status = 0
    finally:
        # Not back into the loop of the parent, whatever happens.
        os._exit(status)


def main() -> None:
    settings = Settings()
    _ = create_app(settings).state.platform.app
    # Nobody asks how a server ended: whoever started it sees that it did.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    children = []
    for line in sys.stdin:
        port, lease = line.split()
        children.append(start(settings, int(port), float(lease)))
        print(children[-1], flush=True)
    for child in children:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()
