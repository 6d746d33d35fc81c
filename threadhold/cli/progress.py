"""Progress: show on stderr how far a command is. Stdout stays for what scripts read."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from langgraph_runtime_sql.progress import Progress

# On a terminal: seconds between two drawings of the line.
REDRAW_SECONDS = 0.1
# Elsewhere: seconds between two lines.
LINE_SECONDS = 10.0
# A rate that is measured over less time says nothing.
RATE_SECONDS = 2.0

_ERASE = "\r\x1b[K"
_UNITS = ("bytes", "KB", "MB", "GB", "TB")


class ProgressLine:
    """Show progress: on a terminal in one line that is rewritten, elsewhere in a line now and then.

    Without a terminal there is a line at the end of each phase, and every ten seconds before.

    Args:
        stream: Where it is shown; by default stderr.
        clock: Returns seconds.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        self._clock = clock
        self._rewrites = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._phase: str | None = None
        self._shown_at = clock()
        self._began_at = self._shown_at
        self._began_with = 0
        self._is_drawn = self._has_ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def show(self, progress: Progress) -> None:
        """Show progress, unless something was shown a moment ago."""
        now = self._clock()
        is_new = progress.phase != self._phase
        if is_new:
            self._phase, self._has_ended = progress.phase, False
            # Work that continues has done a part before.
            self._began_at, self._began_with = now, progress.done
        ends = 0 < progress.total <= progress.done and not self._has_ended
        self._has_ended = self._has_ended or ends
        wait = REDRAW_SECONDS if self._rewrites else LINE_SECONDS
        if ends or (is_new and self._rewrites) or now - self._shown_at >= wait:
            self._shown_at = now
            self._write(describe(progress, now - self._began_at, self._began_with))

    def note(self, line: str) -> None:
        """Write a line that stays."""
        self._put(f"{self._erased()}{line}\n")

    def close(self) -> None:
        """Erase the line of a terminal."""
        self._put(self._erased())

    def _write(self, text: str) -> None:
        if self._rewrites:
            self._is_drawn = True
            # A line that wraps could not be erased.
            self._put(_ERASE + text[: shutil.get_terminal_size().columns - 1])
        else:
            self._put(f"{text}\n")

    def _erased(self) -> str:
        drawn, self._is_drawn = self._is_drawn, False
        return _ERASE if drawn else ""

    def _put(self, text: str) -> None:
        if self._stream is None or not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # The reader of stderr is gone. The work goes on.
            self._stream = None


def describe(progress: Progress, seconds: float, began_with: int = 0) -> str:
    """Return a line about progress, with rate and remaining time if they are known.

    Args:
        progress: The progress.
        seconds: How long its phase has worked.
        began_with: Items that were done when it began.
    """
    phase, done, total, unit = progress
    if not total:
        counted = f"{amount(done, unit)}, " if done else ""
        return f"{phase}: {counted}{duration(seconds)}"
    done = min(done, total)
    shares = f"{amount(done, unit, total)} of {amount(total, unit)} ({100 * done // total} %)"
    if done == total:
        return f"{phase}: {shares} in {duration(seconds)}"
    worked = done - began_with
    if seconds < RATE_SECONDS or worked <= 0:
        return f"{phase}: {shares}"
    left = (total - done) * seconds / worked
    rate = f", {amount(round(worked / seconds), unit)}/s" if worked >= seconds else ""
    return f"{phase}: {shares}{rate}, {duration(left)} left"


def amount(count: int, unit: str, of: int | None = None) -> str:
    """Return a number of items, of bytes in the unit in which it is short.

    Args:
        count: The number.
        unit: `bytes`, or a plural.
        of: The total that follows in the text, with the unit; then a count needs none.
    """
    if unit != "bytes":
        return f"{count:,}" if of is not None else f"{count:,} {unit}"
    size = float(count)
    for name in _UNITS:
        if size < 1024 or name == _UNITS[-1]:
            break
        size /= 1024
    return f"{count:,} bytes" if name == "bytes" else f"{size:,.1f} {name}"


def duration(seconds: float) -> str:
    """Return a time such as `0:07` or `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
