"""The progress of commands, on a terminal and without one, by a clock of the test."""

import io
from collections.abc import Callable

import pytest

from langgraph_runtime_sql.progress import Progress
from threadhold.cli.progress import ProgressLine, amount, describe, duration


class Screen(io.StringIO):
    """A terminal: what a person sees after `\\r` and the erasing of a line."""

    def isatty(self) -> bool:
        return True

    def seen(self) -> list[str]:
        return [line.rpartition("\r\x1b[K")[2] for line in self.getvalue().split("\n")]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def play(line: ProgressLine, clock: Clock, seconds: int, total: int = 1000) -> None:
    """Report ten times a second, until all is done."""
    for step in range(seconds * 10 + 1):
        line.show(Progress("Moving", total * step // (seconds * 10), total))
        clock.now += 0.1


def test_a_terminal_has_one_line_that_is_rewritten_and_erased(clock: Clock) -> None:
    screen = Screen()
    with ProgressLine(screen, clock) as line:
        line.show(Progress("Moving", 0, 1000))
        assert screen.seen() == ["Moving: 0 of 1,000 rows (0 %)"]
        clock.now += 5
        line.show(Progress("Moving", 250, 1000))
        assert screen.seen() == ["Moving: 250 of 1,000 rows (25 %), 50 rows/s, 0:15 left"]
        line.note("skipped a.txt: it is empty")
        clock.now += 1
        line.show(Progress("Comparing", 1, 1000))
        assert screen.seen() == ["skipped a.txt: it is empty", "Comparing: 1 of 1,000 rows (0 %)"]
    assert screen.seen() == ["skipped a.txt: it is empty", ""]


def test_a_terminal_is_not_drawn_for_each_row(clock: Clock) -> None:
    screen = Screen()
    with ProgressLine(screen, clock) as line:
        for done in range(10_000):
            line.show(Progress("Moving", done, 20_000))
            clock.now += 0.001
    assert 90 <= screen.getvalue().count("Moving") <= 110


def test_a_line_fits_into_a_narrow_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "12")
    screen = Screen()
    ProgressLine(screen, clock).show(Progress("Moving", 1, 1000))
    assert screen.seen() == ["Moving: 1 o"]


@pytest.mark.parametrize(("seconds", "lines"), [(1, 1), (9, 1), (35, 4), (100, 10)])
def test_without_a_terminal_there_is_a_line_each_ten_seconds_and_at_the_end(
    clock: Clock, seconds: int, lines: int
) -> None:
    file = io.StringIO()
    with ProgressLine(file, clock) as line:
        play(line, clock, seconds)
    said = file.getvalue().splitlines()
    assert len(said) == lines
    assert said[-1] == f"Moving: 1,000 of 1,000 rows (100 %) in {duration(seconds)}"
    assert "\r" not in file.getvalue() and "\x1b" not in file.getvalue()
    if seconds == 35:
        assert said[0].startswith("Moving: 285 of 1,000 rows (28 %), 28 rows/s, 0:25 left")


def test_a_dumb_terminal_gets_plain_lines(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    with ProgressLine(screen, clock) as line:
        play(line, clock, 1)
    assert screen.getvalue() == "Moving: 1,000 of 1,000 rows (100 %) in 0:01\n"


def test_each_phase_ends_with_a_line_and_only_once(clock: Clock) -> None:
    file = io.StringIO()
    with ProgressLine(file, clock) as line:
        for phase in ("Checking", "Moving"):
            for done in (0, 3, 3, 3):
                line.show(Progress(phase, done, 3))
    assert [said.partition(":")[0] for said in file.getvalue().splitlines()] == [
        "Checking",
        "Moving",
    ]


def test_a_reader_that_is_gone_does_not_stop_the_work(clock: Clock) -> None:
    class Gone(Screen):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    with ProgressLine(Gone(), clock) as line:
        play(line, clock, 1)
        line.note("a")


@pytest.mark.parametrize(
    ("progress", "seconds", "began_with", "said"),
    [
        (Progress("Checking", 0, 0), 75, 0, "Checking: 1:15"),
        (Progress("Reading", 12, 0, "pages"), 5, 0, "Reading: 12 pages, 0:05"),
        (
            Progress("Moving", 900, 1000),
            10,
            800,
            "Moving: 900 of 1,000 rows (90 %), 10 rows/s, 0:10 left",
        ),
        # Slower than one a second.
        (
            Progress("Running", 2, 10, "scripts"),
            100,
            0,
            "Running: 2 of 10 scripts (20 %), 6:40 left",
        ),
        # More than was expected.
        (Progress("Dumping", 12, 10, "tables"), 1, 0, "Dumping: 10 of 10 tables (100 %) in 0:01"),
        (
            Progress("Copying", 3 << 20, 12 << 20, "bytes"),
            3,
            0,
            "Copying: 3.0 MB of 12.0 MB (25 %), 1.0 MB/s, 0:09 left",
        ),
    ],
)
def test_what_a_line_says(progress: Progress, seconds: float, began_with: int, said: str) -> None:
    assert describe(progress, seconds, began_with) == said


@pytest.mark.parametrize(
    ("show", "given", "said"),
    [
        (duration, 7.4, "0:07"),
        (duration, 3723, "1:02:03"),
        (lambda count: amount(count, "bytes"), 1023, "1,023 bytes"),
        (lambda count: amount(count, "bytes"), 3 * 2**40, "3.0 TB"),
    ],
)
def test_times_and_sizes_are_short(show: Callable[[float], str], given: float, said: str) -> None:
    assert show(given) == said
