"""Timing: when trouble began, what was normal before it, and what is new since then."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from my_agent.diagnosis.reading.digest import BUCKETS, Digest, Group

Novelty = Literal["new", "risen", "chronic", "unknown"]

CHRONIC = 3
"""Records before the onset from which on a group may be chronic."""
RISE = 4.0
"""A group that becomes this much more frequent has risen."""
# Trouble must become this much more frequent, with this much evidence, to begin at a moment.
CONTRAST, EVIDENCE = 3.0, 0.5
# What is as frequent in the first third as later tells nothing of a beginning.
STEADY = 2.5
MINUTE = 60_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of a session's sources.

    Attributes:
        first: The earliest time, in microseconds since 1970, or None.
        last: The latest.
        onset: When trouble became frequent, or None if it did not or nothing has a time.
        baseline: Records before the onset; without them nothing is known to be new.
    """

    first: int | None = None
    last: int | None = None
    onset: int | None = None
    baseline: int = 0

    @property
    def tolerance(self) -> int:
        """Return how much earlier than another time a time must be to be before it."""
        return MINUTE // 2


def read(sources: Iterable[Digest]) -> Clock:
    """Return when trouble begins in some sources."""
    digests = list(sources)
    ends = [each for digest in digests for each in (digest.first, digest.last) if each is not None]
    ends += [shift.when for digest in digests for shift in digest.shifts]
    if not ends:
        return Clock()
    first, last = min(ends), max(ends)
    if last <= first:
        return Clock(first, last)
    trouble = [0.0] * BUCKETS
    for digest in digests:
        for group in digest.groups:
            times = moments(digest, group) if group.stance == "trouble" else []
            if not _is_steady(times, first, last):
                for when, count in times:
                    place = min(BUCKETS - 1, (when - first) * BUCKETS // (last - first))
                    trouble[place] += math.log1p(count)
        for shift in digest.shifts:
            trouble[min(BUCKETS - 1, max(0, (shift.when - first) * BUCKETS // (last - first)))] += (
                3.0
            )
    begin = _begin(trouble)
    if begin is None:
        return Clock(first, last)
    edge = first + begin * (last - first) // BUCKETS
    onset = _first_trouble(digests, edge, edge + 2 * (last - first) // BUCKETS)
    normal = sum(
        _before(digest, group, onset)
        for digest in digests
        for group in digest.groups
        if group.stance != "trouble" and not _is_state(group)
    )
    normal += sum(shift.when >= onset for digest in digests for shift in digest.shifts) * CHRONIC
    return Clock(first, last, onset, normal)


def _is_steady(times: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    thirds = [0, 0, 0]
    for when, count in times:
        thirds[min(2, (when - first) * 3 // (last - first))] += count
    return thirds[0] >= CHRONIC and max(thirds) <= STEADY * thirds[0]


def _begin(trouble: Sequence[float]) -> int | None:
    """Return the part of the time at which trouble becomes more frequent, or None."""
    total = sum(trouble)
    best, place, early = 0.0, None, 0.0
    for number in range(1, len(trouble)):
        early += trouble[number - 1]
        late = total - early
        before, after = (early + 0.1) / number, (late + 0.1) / (len(trouble) - number)
        if after < CONTRAST * before:
            continue
        gain = late * math.log(after / (total / len(trouble) + 1e-9))
        gain += early * math.log(before / (total / len(trouble) + 1e-9)) if early else 0.0
        if gain > best:
            best, place = gain, number
    return place if best >= EVIDENCE else None


def _first_trouble(digests: Iterable[Digest], edge: int, end: int) -> int:
    times = [
        each
        for digest in digests
        for group in digest.groups
        if group.stance == "trouble"
        for each in (group.when,)
        if each is not None and edge <= each <= end
    ]
    times += [each.when for digest in digests for each in digest.shifts if edge <= each.when <= end]
    return min(times, default=edge)


def moments(digest: Digest, group: Group) -> list[tuple[int, int]]:
    """Return times and counts of a group, as exactly as the digest knows them."""
    if group.when is None:
        return []
    if digest.first is None or digest.last is None or len(group.histogram) <= 1:
        return [(group.when, group.count)]
    width = (digest.last - digest.first) / BUCKETS
    parts = sorted(group.histogram.items())
    # The first record has an exact time; the others have that of the part they stand in.
    found = [(max(group.when, int(digest.first + part * width)), count) for part, count in parts]
    return [(group.when, found[0][1]), *found[1:]]


def _before(digest: Digest, group: Group, onset: int) -> int:
    return sum(count for when, count in moments(digest, group) if when < onset)


def _is_state(group: Group) -> bool:
    """Return whether a group tells what is now, and not what was when: events of Kubernetes add up."""
    return group.form.startswith("kubectl")


def novelty(digest: Digest, group: Group, clock: Clock) -> Novelty:
    """Return whether a group is new since the onset, more frequent, or as frequent as before."""
    if group.when is None or clock.onset is None or clock.baseline < CHRONIC or _is_state(group):
        return "unknown"
    if group.when >= clock.onset:
        return "new"
    early = _before(digest, group, clock.onset)
    first, last = digest.first or 0, digest.last or 0
    before = early / max(1, clock.onset - first)
    after = (group.count - early) / max(1, last - clock.onset)
    if early < CHRONIC:
        # A first one long before the others is an accident; one that stays alone tells nothing.
        return "risen" if group.count > early else "unknown"
    return "risen" if after >= RISE * before else "chronic"
