"""Anomalies: what is out of the ordinary in all sources of a session, the most telling first."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from my_agent.diagnosis.analysis import blame, changes, timing
from my_agent.diagnosis.analysis.timing import Clock, Novelty
from my_agent.diagnosis.reading import stance
from my_agent.diagnosis.reading.digest import Digest, Group, Place, Shift, Stance

MOST = 300
"""Anomalies that are kept."""
FINE = 200
"""Statements that something goes well that are kept, since they can contradict a cause."""
# A line without trouble is an anomaly if it is new and this rare, or if there are this many.
RARE, MANY = 3, 20
Kind = Literal["trouble", "shift", "change", "burst", "rare", "fine"]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something out of the ordinary, at a place in a source.

    Attributes:
        source: The id of its source.
        kind: `trouble`: it says that something goes wrong; `shift`: a metric that changed; `change`:
            something that was done; `burst`: much of what is normal; `rare`: new, and seldom;
            `fine`: it says that something goes well.
        form: The reader that knows it.
        component: What it is about; empty if nothing says it.
        text: The message of the first.
        count: How many there are.
        share: Their part of the records of the source.
        places: Where the first ones stand.
        when: Time of the first, or None.
        names: Other components that it names.
        change: Which kind of change it tells of.
        score: How telling it is.
    """

    source: str
    kind: Kind
    form: str
    component: str
    level: str
    stance: Stance
    text: str
    count: int
    share: float
    places: tuple[Place, ...]
    when: int | None
    last: int | None
    novelty: Novelty
    names: tuple[str, ...] = ()
    change: str = ""
    score: float = 0.0
    shift: Shift | None = None

    @property
    def id(self) -> str:
        """Return the id: the same place has the same id in each reading."""
        place = self.places[0] if self.places else Place(0, 0, 0)
        # A row has a value of several metrics.
        metric = f":{self.shift.metric[:80]}" if self.shift else ""
        return f"{self.source}:{place.start}-{place.end}{metric}"


@dataclass(slots=True)
class Anomalies:
    """What is out of the ordinary in a session.

    Attributes:
        ranked: The most telling first; without changes and without what is fine.
        changes: What was done, in the order of time.
        fine: Statements that something goes well.
        components: Records by component, of all components with data.
        calls: Pairs of a caller and what it calls.
        blamed: By component, the trouble of others that names it.
        clock: When it began, and what was before.
        lines, unread, unknown, dropped: Sums of the digests.
        metrics: Names of all metrics.
    """

    ranked: list[Anomaly] = field(default_factory=list)
    changes: list[Anomaly] = field(default_factory=list)
    fine: list[Anomaly] = field(default_factory=list)
    components: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    blamed: dict[str, list[Anomaly]] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    lines: int = 0
    unread: int = 0
    unknown: int = 0
    dropped: int = 0
    metrics: list[str] = field(default_factory=list)

    @property
    def trouble(self) -> list[Anomaly]:
        """Return what says that something goes wrong, and the metrics that changed."""
        return [each for each in self.ranked if each.kind in ("trouble", "shift")]


def find(sources: Mapping[str, Digest]) -> Anomalies:
    """Return what is out of the ordinary.

    Args:
        sources: The digests by the id of their source.
    """
    found = Anomalies(clock=timing.read(sources.values()))
    for digest in sources.values():
        found.lines += digest.lines
        found.unread += digest.unread
        found.unknown += digest.unknown
        found.dropped += digest.dropped
        found.metrics += [each for each in digest.metrics if each not in found.metrics]
    found.components = _components(sources)
    known = frozenset(found.components)
    every = [
        each
        for name, digest in sources.items()
        for each in _of_source(name, digest, found.clock, known)
    ]
    found.fine = [each for each in every if each.kind == "fine"][:FINE]
    told = sorted(
        (each for each in every if each.change), key=lambda each: (each.when or 0, each.id)
    )
    found.changes = told[:MOST]
    ranked = [each for each in every if each.kind not in ("fine", "change")]
    ranked.sort(key=lambda each: (-each.score, each.when or math.inf, each.id))
    found.ranked = ranked[:MOST]
    _relate(found, sources)
    return found


def _components(sources: Mapping[str, Digest]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for digest in sources.values():
        for group in digest.groups:
            if group.component:
                found[blame.canonical(group.component)] += group.count
        for shift in digest.shifts:
            if shift.component:
                found[blame.canonical(shift.component)] += 1
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0]))[:MOST])


def _of_source(name: str, digest: Digest, clock: Clock, known: frozenset[str]) -> Iterator[Anomaly]:
    total = max(1, sum(each.count for each in digest.groups))
    for group in digest.groups:
        novelty = timing.novelty(digest, group, clock)
        change = "" if group.stance == "trouble" else changes.of(group.text, group.form)
        kind = _kind(group, novelty, change, total)
        if kind is None:
            continue
        others = (
            blame.named(group.text, group.component, _known(group, known))
            if kind == "trouble"
            else ()
        )
        yield Anomaly(
            name, kind, group.form, blame.canonical(group.component), group.level, group.stance, group.text,
            group.count, group.count / total, tuple(group.places), group.when, group.last, novelty,
            others, change, _score(group, kind, novelty, total, clock),
        )  # fmt: skip
    for shift in digest.shifts:
        yield _of_shift(name, digest, shift)


def _known(group: Group, known: frozenset[str]) -> frozenset[str]:
    # In audit logs, names of services are parts of identifiers.
    return frozenset() if changes.is_audit(group.form) else known


def _of_shift(name: str, digest: Digest, shift: Shift) -> Anomaly:
    way = "rose" if shift.after > shift.before else "fell"
    text = f"{shift.metric} {way} from {shift.before:g} to {shift.after:g}"
    size = abs(math.log10((abs(shift.after) + 1e-9) / (abs(shift.before) + 1e-9)))
    return Anomaly(
        name, "shift", digest.form, blame.canonical(shift.component), "", "neutral", text, 1, 0.0,
        (shift.place,), shift.when, shift.when, "new", score=3.0 + min(2.0, size), shift=shift,
    )  # fmt: skip


def _kind(group: Group, novelty: Novelty, change: str, total: int) -> Kind | None:
    if group.stance == "trouble":
        return "trouble"
    if change:
        return "change"
    if group.stance == "fine":
        return "fine"
    is_new = novelty in ("new", "risen")
    if (is_new or stance.is_login(group.text)) and group.count >= max(MANY, total / MANY):
        return "burst"
    if group.level in ("error", "warning"):
        return "rare"
    return "rare" if novelty == "new" and group.count <= RARE else None


def _score(group: Group, kind: Kind, novelty: Novelty, total: int, clock: Clock) -> float:
    """Return how telling a group is: what it says counts most, then novelty, order and rarity."""
    score = {"trouble": 3.0, "burst": 1.5, "rare": 0.5}.get(kind, 0.0)
    score += {"error": 1.0, "warning": 0.4}.get(group.level, 0.0)
    score += {"new": 2.0, "risen": 1.5, "chronic": -1.5}.get(novelty, 0.0)
    score += 1.0 - math.log(group.count + 1) / math.log(total + 2)
    if kind == "trouble" and clock.onset is not None and group.when is not None:
        # What comes first is nearer to the cause than what follows.
        late = max(0, group.when - clock.onset) / max(1, (clock.last or 0) - clock.onset)
        score += 1.5 * (1.0 - min(1.0, late))
    return score


def _relate(found: Anomalies, sources: Mapping[str, Digest]) -> None:
    """Say who blames whom, and who calls whom."""
    blamed: dict[str, list[Anomaly]] = defaultdict(list)
    calls: dict[tuple[str, str], None] = {}
    for digest in sources.values():
        calls.update(
            ((blame.canonical(one), blame.canonical(other)), None) for one, other in digest.calls
        )
    for each in found.ranked:
        for name in each.names:
            blamed[name].append(each)
            if each.component:
                calls[each.component, name] = None
    found.blamed = dict(blamed)
    found.calls = [(one, other) for one, other in calls if one and other and one != other][:MOST]
