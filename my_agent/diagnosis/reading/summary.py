"""Summary: what one source says, in a size that does not grow with the source."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["log", "metrics", "trace", "probe", "text", "words"]
"""What a source is."""
Stance = Literal["trouble", "fine", "neutral"]
"""Whether something says that it goes wrong, that it goes well, or neither."""

GROUPS, PLACES, BUCKETS = 2_000, 5, 60
QUOTE = 400
"""Characters of a line that are kept; its place leads to all of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a source: offsets of characters, and the line from 1."""

    start: int
    end: int
    line: int


@dataclass(slots=True)
class Group:
    """Records that say the same but for numbers and names.

    Attributes:
        form: The reader that knows them, such as `syslog`, `kubectl-events`, `java-trace`, `df`, `text`.
        component: What wrote them or what they are about; empty if nothing says it.
        level: `error`, `warning`, `info`, or empty.
        stance: What they say about the component.
        template: The constant words.
        text: The message of the first, without date and level.
        count: How many there are.
        places: Where the first ones, and the last one, stand.
        when: Time of the first in microseconds since 1970, or None.
        last: Time of the last.
        histogram: Counts by a sixtieth of the time of the source, by number of the part.
    """

    form: str
    component: str
    level: str
    stance: Stance
    template: str
    text: str
    count: int
    places: list[Place]
    when: int | None = None
    last: int | None = None
    histogram: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Shift:
    """A metric that changed: from its usual value to another one that stays."""

    component: str
    metric: str
    before: float
    after: float
    when: int
    place: Place


@dataclass(slots=True)
class Digest:
    """What a source says.

    Attributes:
        form: The most common reader.
        lines: Lines of the source.
        unread: Lines that were not read, because there are too many of them.
        unknown: Lines that no reader knows, which are kept as text.
        dropped: Groups that were left out, since there were too many.
        first: The earliest time in it, in microseconds since 1970, or None.
        last: The latest time.
        groups: What it says, in the order of the first places.
        shifts: Metrics that changed.
        metrics: Names of metrics, at most 200.
        calls: Pairs of a caller and the called component, of traces.
    """

    form: str = "text"
    lines: int = 0
    unread: int = 0
    unknown: int = 0
    dropped: int = 0
    first: int | None = None
    last: int | None = None
    groups: list[Group] = field(default_factory=list)
    shifts: list[Shift] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
