"""Start the same server many times, each in a process that is forked from this one.

Importing everything takes seconds and a fork takes none, so a test can kill a server many
times. The forked process has imported and configured, and has started no thread and no database.

    launcher.py PORT                the settings come from the environment
    < start [LEASE]                 > the process id; LEASE is the length of a claim in seconds
    < wait                          > the exit status once it has ended, as in `Popen.returncode`
"""

import os
import signal
import sys
import uuid

from langgraph_runtime_sql import lifespan
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.queue import queue
from langgraph_runtime_sql.webhooks import delivery
from server.app import create_app
from server.cli import PROGRAM
from server.settings import Settings
from threadhold.serving import server


def start(settings: Settings, port: int, lease: list[str]) -> int:
    """Fork a server and return its process id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        # Its own name, as in a process that imports the module itself. Tests see whose a run is.
        run_claim.OWNER = f"{os.getpid()}-{uuid.uuid4().hex}"
        lifespan.EVENT_SWEEP_SECONDS = 0.5
        # When a server sees what a command has told the database to send again.
        delivery.SWEEP_SECONDS = 1.0
        if lease:
            run_claim.LEASE_SECONDS = float(lease[0])
            queue.SWEEP_SECONDS = float(lease[0]) / 3
        server.serve(PROGRAM, settings, "127.0.0.1", port)
        status = 0
    finally:
        # The child must never return into the loop of the parent.
        os._exit(status)


def wait(child: int) -> int:
    """Wait for the end of a server and return its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    port, settings, child = int(sys.argv[1]), Settings(), 0
    _ = create_app(settings).state.platform.app
    print("ready", flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "start":
            child = start(settings, port, arguments)
            print(child, flush=True)
        else:
            print(wait(child), flush=True)
            child = 0
    if child:
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
