"""Start servers of one database, each forked from this process, which has imported everything.

Like tests/chaos/launcher.py, but for several servers at once, and without waiting for their ends.

    launcher.py LEASE       LEASE is the length of a claim in seconds; settings come from the
                            environment
    < PORT                  > the process id of a server that starts on this port
"""

import os
import signal
import sys

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
        # The audit in Postgres reads this setting to know which process writes.
        os.environ["PGOPTIONS"] = f"-c history.process={os.getpid()}"
        server.serve(PROGRAM, settings, "127.0.0.1", port)
        status = 0
    finally:
        # The child must never return into the loop of the parent.
        os._exit(status)


def main() -> None:
    # Set this before the import of modules that use it.
    run_claim.LEASE_SECONDS = float(sys.argv[1])
    from server.app import create_app

    settings = Settings()
    _ = create_app(settings).state.platform.app
    # The cluster sees the ends of servers itself, so this process ignores exit statuses.
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
