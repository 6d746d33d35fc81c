"""Groups: records that say the same, in bounded memory however many there are."""

from collections.abc import Callable
from dataclasses import dataclass, field

from my_agent.diagnosis.reading import templates
from my_agent.diagnosis.reading.record import Record, clean
from my_agent.diagnosis.reading.summary import BUCKETS, GROUPS, PLACES, QUOTE, Group, Place, Stance

Judge = Callable[[str, str], Stance]
"""Returns the stance of a message of a level."""

MOST = 6_000
"""Groups that are kept while reading, of each of good and bad ones."""
SHAPES = 30_000
"""Shapes of messages whose group is remembered."""
NAME = 200
"""Characters of a component."""
_PARTS = 240
_SHORTEST = 1_000
_OTHERS = "others"


@dataclass(slots=True)
class _Gathered:
    """A group that still grows."""

    form: str
    component: str
    level: str
    stance: Stance
    template: str
    text: str
    count: int = 0
    places: list[Place] = field(default_factory=list)
    final: tuple[int, int, int] = (0, 0, 0)
    when: int | None = None
    last: int | None = None
    parts: dict[int, int] = field(default_factory=dict)

    @property
    def is_bad(self) -> bool:
        return self.stance == "trouble" or self.level in ("error", "warning")


class Groups:
    """The groups of one source.

    Attributes:
        dropped: How many groups were folded into others, because there are too many.
        first: The earliest time, or None.
        last: The latest time.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._templates = templates.Templates()
        self._found: dict[tuple[str, ...], _Gathered] = {}
        self._shapes: dict[tuple[str, str, str], _Gathered] = {}
        self._kept = {True: 0, False: 0}
        self._clock = _Clock()
        self.dropped = 0
        self.first: int | None = None
        self.last: int | None = None

    def add(self, record: Record) -> None:
        """Take a record."""
        shape = record.name or templates.shape(record.text)
        known = (record.component, record.form + record.level + record.stance, shape)
        group = self._shapes.get(known)
        if group is None:
            group = self._of_new_shape(known, record)
        group.count += record.count
        if len(group.places) < PLACES - 1:
            group.places.append(Place(record.start, record.end, record.line))
        else:
            group.final = (record.start, record.end, record.line)
        if record.when is not None:
            self._time(group, record.when, record.count)

    def _of_new_shape(self, known: tuple[str, str, str], record: Record) -> _Gathered:
        if len(self._shapes) < SHAPES:
            self._shapes[known] = group = self._group(record)
            return group
        # So many different messages: they are told apart by their first words.
        coarse = ("", known[1], templates.beginning(record.text))
        found = self._shapes.get(coarse)
        if found is None:
            found = self._group(record)
            if len(self._shapes) < 2 * SHAPES:
                self._shapes[coarse] = found
        return found

    def _time(self, group: _Gathered, when: int, count: int) -> None:
        if group.when is None or when < group.when:
            group.when = when
        if group.last is None or when > group.last:
            group.last = when
        if self.first is None or when < self.first:
            self.first = when
        if self.last is None or when > self.last:
            self.last = when
        if factor := self._clock.widen(when):
            for each in self._found.values():
                each.parts = _merged(each.parts, factor)
        part = self._clock.part(when)
        group.parts[part] = group.parts.get(part, 0) + count

    def _group(self, record: Record) -> _Gathered:
        stance = self._stance(record)
        component = clean(record.component[:NAME])
        if record.name:
            key, template = record.name, record.name
            template = record.text[: templates.LONGEST]
        else:
            key, template = self._templates.find(component, record.text)
        identity = (record.form, component, record.level, stance, key)
        found = self._found.get(identity)
        if found is not None:
            found.template = clean(template[:QUOTE])
            return found
        group = _Gathered(
            record.form,
            component,
            record.level,
            stance,
            clean(template[:QUOTE]),
            clean(record.text[:QUOTE]),
        )
        return self._kept_or_other(identity, group)

    def _kept_or_other(self, identity: tuple[str, ...], group: _Gathered) -> _Gathered:
        bad = group.is_bad
        if self._kept[bad] < MOST:
            self._kept[bad] += 1
            self._found[identity] = group
            return group
        self.dropped += 1
        other = (group.form, "", group.level, group.stance, _OTHERS)
        if other not in self._found:
            group.component, group.template = "", "<*>"
            self._found[other] = group
        return self._found[other]

    def _stance(self, record: Record) -> Stance:
        if record.stance == "trouble":
            return "trouble"
        if record.stance == "fine":
            return "fine"
        if record.stance == "neutral":
            return "neutral"
        return self._judge(record.text, record.level)

    def best(self) -> tuple[list[Group], int]:
        """Return the groups that tell most, in the order of their first places, and how many are left out."""
        groups = list(self._found.values())
        left = max(0, len(groups) - GROUPS)
        if left:
            groups = sorted(groups, key=_rank)[:GROUPS]
        groups.sort(key=lambda each: each.places[0].start)
        return [self._finished(each) for each in groups], left + self.dropped

    def _finished(self, each: _Gathered) -> Group:
        places = list(each.places)
        if each.final[2]:
            places.append(Place(*each.final))
        histogram = self._clock.histogram(each.parts, self.first, self.last)
        return Group(
            each.form, each.component, each.level, each.stance, each.template, each.text,
            each.count, places, each.when, each.last, histogram,
        )  # fmt: skip


def _rank(each: _Gathered) -> tuple[bool, int, int]:
    return (not each.is_bad, min(each.count, 50), each.places[0].start)


def _merged(parts: dict[int, int], factor: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for part, count in parts.items():
        found[part // factor] = found.get(part // factor, 0) + count
    return found


class _Clock:
    """Parts of the time of a source, whose beginning and end are not known yet."""

    def __init__(self) -> None:
        self._origin: int | None = None
        self._width = _SHORTEST

    def part(self, when: int) -> int:
        return (when - (self._origin or 0)) // self._width

    def widen(self, when: int) -> int:
        """Make the parts so long that a time is within them.

        Return how many earlier parts one is now, or 0 if nothing changed.
        """
        if self._origin is None:
            self._origin = when
        factor = 1
        while not -_PARTS < self.part(when) < _PARTS:
            self._width *= 2
            factor *= 2
        return factor if factor > 1 else 0

    def histogram(
        self, parts: dict[int, int], first: int | None, last: int | None
    ) -> dict[int, int]:
        """Return counts by sixtieths of the time between two times."""
        if first is None or last is None or self._origin is None:
            return {}
        length = max(1, last - first)
        found: dict[int, int] = {}
        for part, count in parts.items():
            middle = self._origin + part * self._width + self._width // 2
            place = min(BUCKETS - 1, max(0, (middle - first) * BUCKETS // length))
            found[place] = found.get(place, 0) + count
        return dict(sorted(found.items()))
