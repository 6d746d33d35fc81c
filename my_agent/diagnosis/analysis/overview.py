"""Overview: what is out of the ordinary, by component and in the order of time, short enough to read."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from my_agent.diagnosis.analysis.anomalies import Anomalies, Anomaly

SECTIONS, LINES, TOGETHER, CHANGES = 8, 5, 3, 5
"""Components, lines of each, moments and changes that are shown."""
MINUTE = 60_000_000


@dataclass(frozen=True, slots=True)
class Section:
    """What is out of the ordinary at a component.

    Attributes:
        component: Its name; empty for what names none.
        first: What came first, or the most telling one if nothing has a time.
        lines: The most telling ones, in the order of time.
        more: How many are not shown.
        blames: Components that it names.
        blamed_by: Components whose trouble names it.
    """

    component: str
    first: Anomaly
    lines: tuple[Anomaly, ...]
    more: int
    blames: tuple[str, ...]
    blamed_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """Trouble of several components that begins at about the same time, in the order of time."""

    when: int
    last: int
    lines: tuple[Anomaly, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """What is out of the ordinary in a session.

    Attributes:
        sections: The components with the most telling trouble first.
        more: Components with trouble that are not shown.
        moments: What begins together.
        changes: What was done before the onset, the last ones, or all if there is no onset.
        first: What came first of all that says that something goes wrong.
    """

    sections: tuple[Section, ...] = ()
    more: int = 0
    moments: tuple[Moment, ...] = ()
    changes: tuple[Anomaly, ...] = ()
    first: Anomaly | None = None


@dataclass(slots=True)
class _Run:
    lines: list[Anomaly] = field(default_factory=list)
    last: int = 0


def shown(found: Anomalies, *, sections: int = SECTIONS, lines: int = LINES) -> Overview:
    """Return what to show of some anomalies.

    Args:
        found: The anomalies.
        sections: Components at most.
        lines: Lines of each component at most.
    """
    fresh = [each for each in found.trouble if each.novelty != "chronic"] or found.ranked
    by: dict[str, list[Anomaly]] = defaultdict(list)
    for each in fresh:
        by[each.component].append(each)
    names = sorted(by, key=lambda name: (-_weight(by[name]), name))
    return Overview(
        tuple(_section(found, name, by[name], lines) for name in names[:sections]),
        max(0, len(names) - sections),
        tuple(_moments(found, fresh)),
        tuple(_before(found)),
        _earliest(each for each in fresh if each.kind in ("trouble", "shift")),
    )


def _weight(group: list[Anomaly]) -> float:
    # The best one counts, and others add little: a talkative component is no worse.
    return max(each.score for each in group) + 0.1 * min(5, len(group))


def _earliest(group: Iterable[Anomaly]) -> Anomaly | None:
    return min(group, key=lambda each: (each.when or inf, -each.score, each.id), default=None)


def _section(found: Anomalies, name: str, group: list[Anomaly], most: int) -> Section:
    told = group[:most]
    first = _earliest(group) or group[0]
    if first not in told:
        told[-1] = first
    told.sort(key=lambda each: (each.when or inf, -each.score, each.id))
    blames = dict.fromkeys(other for each in group for other in each.names)
    blamed_by = dict.fromkeys(each.component for each in found.blamed.get(name, []))
    return Section(
        name, first, tuple(told), len(group) - len(told), tuple(blames)[:most],
        tuple(each for each in blamed_by if each and each != name)[:most],
    )  # fmt: skip


def _moments(found: Anomalies, fresh: list[Anomaly]) -> list[Moment]:
    """Return times at which trouble of more than one component or source begins."""
    clock = found.clock
    if clock.first is None or clock.last is None:
        return []
    gap = max(MINUTE // 6, min(MINUTE, (clock.last - clock.first) // 60))
    runs: list[_Run] = []
    for each in sorted((e for e in fresh if e.when is not None), key=lambda e: (e.when or 0, e.id)):
        when = each.when or 0
        if not runs or when - runs[-1].last > gap:
            runs.append(_Run())
        runs[-1].lines.append(each)
        runs[-1].last = when
    several = [run for run in runs if len({(e.component, e.source) for e in run.lines}) > 1]
    several.sort(key=lambda run: -sum(each.score for each in run.lines))
    return [
        Moment(run.lines[0].when or 0, run.last, _spread(run.lines)) for run in several[:TOGETHER]
    ]


def _spread(lines: list[Anomaly]) -> tuple[Anomaly, ...]:
    """Return the first line of each component, in the order of time."""
    firsts: dict[tuple[str, str], Anomaly] = {}
    for each in lines:
        firsts.setdefault((each.component, each.source), each)
    return tuple(list(firsts.values())[: LINES + 1])


def _before(found: Anomalies) -> list[Anomaly]:
    onset = found.clock.onset
    early = [
        each
        for each in found.changes
        if onset is None or each.when is None or each.when <= onset + found.clock.tolerance
    ]
    return early[-CHANGES:]
