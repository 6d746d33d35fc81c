"""Spot: the line that is being read, and records of it."""

from dataclasses import dataclass

from my_agent.diagnosis.reading import dates
from my_agent.diagnosis.reading.record import Record

# The age of an event tells its time only if it was shown shortly before it was given.
FRESH = dates.DAY


@dataclass(slots=True)
class Spot:
    """A line of a source.

    Attributes:
        start: Offset of its first character.
        end: Offset behind its last character.
        line: Its number, from 1.
        given: When the source was given, in microseconds since 1970.
        latest: The latest time that was read in the source, or None.
        is_long: Whether it is more than one line.
    """

    start: int
    end: int
    line: int
    given: int
    latest: int | None = None
    is_long: bool = False

    def record(
        self, form: str, component: str, level: str, text: str, *, stance: str = "",
        name: str = "", when: int | None = None, count: int = 1,
    ) -> Record:  # fmt: skip
        """Return a record that is this line."""
        return Record(
            self.start, self.end, self.line, form, when, component, level, text, stance, count, name
        )

    def ago(self, age: str) -> int | None:
        """Return the time of something of an age; None if that is not known.

        A source with dates of its own that are older was saved before it was given.
        """
        if self.latest is not None and self.given - self.latest > FRESH:
            return None
        return dates.ago(age, self.given)
