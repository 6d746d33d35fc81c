"""Starts servers of one database, each a fork of this process, which has imported everything.

As tests/chaos/launcher.py, for several servers at once; it never waits for any of them.

    launcher.py LEASE       how long a claim lasts, in seconds; settings come from the environment
    < PORT                  > the process id of a server that starts there
"""

import os
import signal
import sys
import uuid

from langgraph_runtime_sql.ops.runs import claim as run_claim
from server.settings import Settings


def start(settings: Settings, port: int) -> int:
    """Fork a server and return its process id."""
    from server.cli import PROGRAM
    from threadhold.serving import server

    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with open(f"server-{port}.log", "ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        # By this Postgres knows who writes.
        os.environ["PGOPTIONS"] = f"-c history.process={os.getpid()}"
        run_claim.OWNER = uuid.uuid4().hex
        server.serve(PROGRAM, settings, "127.0.0.1", port)
        status = 0
    finally:
        # Not back into the loop of the parent, whatever happens.
        os._exit(status)


def main() -> None:
    # Before anything is imported that goes by it.
    run_claim.LEASE_SECONDS = float(sys.argv[1])
    from server.app import create_app

    settings = Settings()
    _ = create_app(settings).state.platform.app
    # Nobody asks how a server ended: whoever started it sees that it did.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    children = []
    for line in sys.stdin:
        children.append(start(settings, int(line)))
        print(children[-1], flush=True)
    for child in children:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()
