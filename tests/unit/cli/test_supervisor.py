"""The supervisor of several processes: who is started again, and when all end."""

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
def unharmed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The signals of the process that tests run in are its own again afterwards."""
    monkeypatch.setattr(processes, "RESTART_SECONDS", 0.0)
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


class Scripted(Supervisor):
    """Its processes do what is written, one after the other; when the last starts, all shall end.

    Attributes:
        stop_seconds: Seconds that they have to end in.
        started: How many it has started.
    """

    stop_seconds = 600.0

    def __init__(self, count: int, *scripts: str) -> None:
        super().__init__([], "127.0.0.1", 0, count, self.stop_seconds)
        self._scripts = scripts
        self.started = 0

    def _launch(self, inherits: tuple[int, int, int]) -> subprocess.Popen[bytes]:
        script = self._scripts[self.started]
        self.started += 1
        # Blocked, so that the signal is waited for and not died of.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            command = [sys.executable, "-c", script, str(inherits[-1])]
            child = subprocess.Popen(command, pass_fds=inherits)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if self.started == len(self._scripts):
            signal.raise_signal(signal.SIGTERM)
        return child


def test_all_end_although_they_were_told_while_the_last_was_starting() -> None:
    supervisor = Scripted(2, WAITS, WAITS)
    assert supervisor.run() == 0
    assert supervisor.started == 2


def test_what_cannot_start_is_the_end_of_all(caplog: pytest.LogCaptureFixture) -> None:
    supervisor = Scripted(2, "raise SystemExit(3)", WAITS, WAITS)
    assert supervisor.run() == 3
    assert supervisor.started == 2
    assert "cannot start (3): ending all" in caplog.text


def test_one_that_has_served_is_replaced_whatever_it_exits_with() -> None:
    """A graph may call `os._exit(1)`."""
    exits = [f"{SERVES}os._exit({code})" for code in processes.START_FAILURES]
    supervisor = Scripted(2, WAITS, *exits, WAITS)
    assert supervisor.run() == 0
    assert supervisor.started == 5


def test_one_that_dies_is_replaced_however_often_its_successor_cannot_start() -> None:
    """Its database may be restarting meanwhile; the others serve on."""
    dies = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    supervisor = Scripted(2, WAITS, dies, "raise SystemExit(3)", "raise SystemExit(1)", WAITS)
    assert supervisor.run() == 0
    assert supervisor.started == 5


class Deaf(Scripted):
    """Its processes hear that they shall end, and do not."""

    def __init__(self, count: int, heard: Path) -> None:
        note = f"open({str(heard)!r}, 'a').write('x')"
        script = f"import signal, time; signal.sigwait({{signal.SIGTERM}}); {note}; time.sleep(600)"
        super().__init__(count, *[script] * count)
        self._heard = heard

    def _stop_children(self) -> None:
        super()._stop_children()
        if self._heard.exists() and len(self._heard.read_text()) == self._count:
            signal.raise_signal(signal.SIGINT)


def test_told_again_it_ends_all_at_once(tmp_path: Path) -> None:
    supervisor = Deaf(2, tmp_path / "heard")
    assert supervisor.run() == 128 + signal.SIGINT


def test_what_does_not_end_in_time_is_ended(tmp_path: Path) -> None:
    supervisor = Scripted(1, "import signal; signal.sigwait({signal.SIGUSR1})")
    supervisor._stop_seconds = 0.0
    assert supervisor.run() == 1
