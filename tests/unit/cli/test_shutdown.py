"""A process that receives a signal to end, or loses its supervisor."""

import os
import signal
import subprocess
import sys

import pytest

SECONDS = 60
ENDS = """
import signal, time
from threadhold.serving.shutdown import ShutdownTimer
timer = ShutdownTimer({seconds})
def told(number, frame):
    timer.signalled(number)
    print("told", flush=True)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, told)
print("ready", flush=True)
while True:
    time.sleep(600)
"""
INHERITS = """
import socket, time
from threadhold.serving import supervisor as processes
with socket.socket() as listening:
    processes.inherit(f"{{listening.detach()}},{alive},{alive}")
    print("ready", flush=True)
    time.sleep(600)
"""


def started(script: str, *descriptors: int) -> subprocess.Popen[str]:
    """Start a process that runs `script` and wait until it prints "ready"."""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, pass_fds=descriptors
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_process_that_misses_its_shutdown_deadline_exits_with_1() -> None:
    with started(ENDS.format(seconds=0.1)) as process:
        process.terminate()
        assert process.wait(SECONDS) == 1


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_second_signal_kills_the_process(second: signal.Signals) -> None:
    with started(ENDS.format(seconds=600)) as process:
        process.terminate()
        assert process.stdout is not None
        assert process.stdout.readline() == "told\n"
        process.send_signal(second)
        assert process.wait(SECONDS) == -second


def test_process_ends_when_its_supervisor_dies() -> None:
    alive, held = os.pipe()
    with started(INHERITS.format(alive=alive), alive) as process:
        os.close(alive)
        assert process.poll() is None
        # The operating system closes this end of the pipe when the supervisor dies.
        os.close(held)
        assert process.wait(SECONDS) == -signal.SIGTERM
