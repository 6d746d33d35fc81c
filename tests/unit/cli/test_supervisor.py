"""The supervisor of several processes: which processes it restarts, and when it ends all of them."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from threadhold.serving import supervisor as processes
from threadhold.serving.supervisor import Supervisor

SERVES = "import os, sys; os.write(int(sys.argv[1]), b'1'); "
WAITS = "import signal; signal.sigwait({signal.SIGTERM})"


@pytest.fixture(autouse=True)
def restored_signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the signal handlers of the test process afterwards."""
    monkeypatch.setattr(processes, "RESTART_SECONDS", 0.0)
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


class Scripted(Supervisor):
    """A supervisor whose processes run the given scripts in order.

    When the last one has started, the supervisor receives SIGTERM.

    Attributes:
        stop_seconds: Seconds that its processes have to end in.
        started: How many processes it has started.
    """

    stop_seconds = 600.0

    def __init__(self, count: int, *scripts: str) -> None:
        super().__init__([], "127.0.0.1", 0, count, self.stop_seconds)
        self._scripts = scripts
        self.started = 0

    def _launch(self, inherits: tuple[int, int, int]) -> subprocess.Popen[bytes]:
        script = self._scripts[self.started]
        self.started += 1
        # Block SIGTERM so that `sigwait` in the child receives it instead of dying of it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            command = [sys.executable, "-c", script, str(inherits[-1])]
            child = subprocess.Popen(command, pass_fds=inherits)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if self.started == len(self._scripts):
            signal.raise_signal(signal.SIGTERM)
        return child


def test_all_processes_end_if_the_signal_arrives_while_one_is_starting() -> None:
    supervisor = Scripted(2, WAITS, WAITS)
    assert supervisor.run() == 0
    assert supervisor.started == 2


def test_process_that_cannot_start_ends_all_processes(caplog: pytest.LogCaptureFixture) -> None:
    supervisor = Scripted(2, "raise SystemExit(3)", WAITS, WAITS)
    assert supervisor.run() == 3
    assert supervisor.started == 2
    assert "cannot start (3): ending all" in caplog.text


def test_process_that_has_served_is_restarted_after_any_exit_code() -> None:
    """A graph may call `os._exit(1)`: that exit code does not mean a failed start."""
    exits = [f"{SERVES}os._exit({code})" for code in processes.START_FAILURES]
    supervisor = Scripted(2, WAITS, *exits, WAITS)
    assert supervisor.run() == 0
    assert supervisor.started == 5


def test_killed_process_is_restarted_until_its_replacement_starts() -> None:
    """The database may be restarting meanwhile, and the other processes still serve."""
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    supervisor = Scripted(2, WAITS, dies, "raise SystemExit(3)", "raise SystemExit(1)", WAITS)
    assert supervisor.run() == 0
    assert supervisor.started == 5


class IgnoringSignals(Scripted):
    """A supervisor whose processes receive SIGTERM and do not end."""

    def __init__(self, count: int, received: Path) -> None:
        note = f"open({str(received)!r}, 'a').write('x')"
        script = f"import signal, time; signal.sigwait({{signal.SIGTERM}}); {note}; time.sleep(600)"
        super().__init__(count, *[script] * count)
        self._heard = received

    def _stop_children(self) -> None:
        super()._stop_children()
        if self._heard.exists() and len(self._heard.read_text()) == self._count:
            signal.raise_signal(signal.SIGINT)


def test_second_signal_ends_all_processes_at_once(tmp_path: Path) -> None:
    supervisor = IgnoringSignals(2, tmp_path / "heard")
    assert supervisor.run() == 128 + signal.SIGINT


def test_process_that_misses_its_shutdown_deadline_is_killed(tmp_path: Path) -> None:
    supervisor = Scripted(1, "import signal; signal.sigwait({signal.SIGUSR1})")
    supervisor._stop_seconds = 0.0
    assert supervisor.run() == 1
