"""Held: the record to which the next lines may belong, such as the frames of its trace."""

from collections.abc import Iterator

from my_agent.diagnosis.reading import slow, stacks
from my_agent.diagnosis.reading.record import Record

CONTINUED = 400
"""Lines that may belong to one record."""
RECORD = 4_000
"""Characters of a record that are shown whole; a longer one is shown until its telling line."""
_FIRST = 190
"""Characters of its first line that are kept where another line says more."""
_OPENINGS = ("Traceback (", "goroutine ", "Stack trace")


class Held:
    """A record that may go on.

    Attributes:
        record: The record, or None.
    """

    def __init__(self) -> None:
        self.record: Record | None = None
        self._first = self._telling = ""
        self._end = self._indent = self._lines = 0
        self._is_cause = False

    def begin(self, record: Record, raw: str) -> None:
        """Hold a record.

        Args:
            record: The record of the line.
            raw: The line, with the spaces before it.
        """
        self.record = record
        self._first, self._telling = record.text, ""
        self._end = record.end
        self._is_cause = False
        self._indent = _indent(raw)
        self._lines = 0

    def take(self, raw: str, said: str, end: int, *, after_blank: bool) -> bool:
        """Take a line that belongs to the record. Return whether it does.

        Args:
            raw: The line.
            said: The line without spaces around it.
            end: The offset behind it.
            after_blank: Whether an empty line is between.
        """
        record = self.record
        if record is None or self._lines >= CONTINUED:
            return False
        deeper = _indent(raw) > self._indent and not after_blank
        if record.form == "text" and stacks.begins(said):
            return False
        goes_on = stacks.continues(said, record.form) or slow.continues(said, record.form)
        if not deeper and (not goes_on or said[0] == "{"):
            return False
        self._lines += 1
        record.end = end
        self._learn(record, said, end)
        return True

    def _learn(self, record: Record, said: str, end: int) -> None:
        """Keep the line that says most: the last cause, or what the exception is."""
        if record.form == slow.FORM:
            if slow.is_statement(said):
                self._telling, self._end = said, end
            return
        if record.form in ("trace", "text", "node-trace"):
            record.form = stacks.language(said) or record.form
        cause = stacks.is_cause(said)
        better = cause or (stacks.says(said) and not self._is_cause)
        if better or (not self._telling and stacks.is_telling(said)):
            self._telling, self._end = said, end
            self._is_cause = cause or self._is_cause

    def release(self) -> Iterator[Record]:
        """Yield the record, if there is one: it is whole."""
        record, self.record = self.record, None
        if record is None:
            return
        if record.end - record.start > RECORD:
            record.end = self._end
        if self._telling and self._telling not in self._first:
            first = "" if self._first.startswith(_OPENINGS) else f"{self._first[:_FIRST]}\n"
            record.text = f"{first}{self._telling[: 2 * _FIRST - len(first)]}"
        yield record


def _indent(raw: str) -> int:
    return len(raw) - len(raw.lstrip(" \t"))
