"""Misfires: what a cron does about missed slots.

A cron says it in its metadata: `{"misfire": {"policy": "skip", "grace_seconds": 300}}`. A server that
was down, or that was too busy, finds the first missed slot due when it looks again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from starlette.exceptions import HTTPException

from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.ops.crons import schedule as cron_schedule

Policy = Literal["run_once", "skip", "run_all"]

KEY = "misfire"
POLICIES: tuple[str, ...] = get_args(Policy)
# How late a slot may be and still count as in time, in seconds: the default, and the most.
GRACE, LONGEST = 60.0, 366 * 24 * 3600
# `run_all` runs at most so many missed slots, the newest ones. So many slots are looked at.
MOST, LOOKED = 100, 200


@dataclass(frozen=True, slots=True)
class Misfire:
    """What a cron does about missed slots.

    Attributes:
        policy: `run_once`: one run for all of them. `skip`: no run for them. `run_all`: a run for
            each.
        grace_seconds: How late a slot may be and still count as in time.
    """

    policy: Policy = "run_once"
    grace_seconds: float = GRACE


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about a due cron.

    Attributes:
        fires: Whether a run is created for the due slot.
        following: The next slot, or None if the schedule has no more.
        missed: How many slots are too late, as far as they were looked at.
        late_seconds: How late the due slot is.
    """

    fires: bool
    following: datetime | None
    missed: int
    late_seconds: float


def of(metadata: Mapping[str, Any]) -> Misfire:
    """Return what the metadata of a cron says.

    Raises:
        HTTPException: (422) it is not usable.
    """
    given = metadata.get(KEY, {})
    if isinstance(given, str):
        given = {"policy": given}
    if not isinstance(given, dict) or given.keys() - {"policy", "grace_seconds"}:
        raise HTTPException(
            422,
            f"Invalid metadata.{KEY}: expected a policy, or an object with `policy` and "
            "`grace_seconds`.",
        )
    policy, grace = given.get("policy", "run_once"), given.get("grace_seconds", GRACE)
    if policy not in POLICIES:
        raise HTTPException(
            422, f"Invalid metadata.{KEY}.policy: {policy!r}. There are {', '.join(POLICIES)}."
        )
    if type(grace) not in (int, float) or not 0 <= grace <= LONGEST:
        raise HTTPException(
            422,
            f"Invalid metadata.{KEY}.grace_seconds: {grace!r}. Expected seconds from 0 to {LONGEST}.",
        )
    return Misfire(policy, float(grace))


def policy_of(row: Row) -> str:
    """Return the name of a stored cron's policy."""
    return _stored(row["metadata"]).policy


def decide(row: Row, now: datetime) -> Decision:
    """Return what a due cron does.

    Args:
        row: The cron. Its `next_run_date` is the due slot.
        now: The current time.
    """
    misfire, slot = _stored(row["metadata"]), row["next_run_date"]
    in_time = now - timedelta(seconds=misfire.grace_seconds)
    slots = _due_slots(row, now)
    late = [each for each in slots if each < in_time]
    after = _next(row, now)
    seconds = (now - slot).total_seconds()
    if not late:
        return Decision(True, after, 0, seconds)
    if misfire.policy == "run_once":
        return Decision(True, after, len(late), seconds)
    if misfire.policy == "skip":
        # A later slot may be in time.
        current = slots[len(late)] if len(late) < len(slots) else after
        return Decision(False, current, len(late), seconds)
    if len(slots) > MOST:
        return Decision(False, slots[-MOST], len(slots) - MOST, seconds)
    return Decision(True, slots[1] if len(slots) > 1 else after, len(late), seconds)


def _stored(metadata: Mapping[str, Any]) -> Misfire:
    try:
        return of(metadata)
    except HTTPException:
        # Stored before this was checked.
        return Misfire()


def _due_slots(row: Row, now: datetime) -> list[datetime]:
    """Return the slots up to now; if there are too many, the first one and the newest ones."""
    first: datetime = row["next_run_date"]
    found = [first, *_slots(row, first, now)]
    if len(found) > LOOKED:
        # As many as fit into the same time before now. To look at all would take too long.
        newest = list(_slots(row, now - (found[-1] - first), now))
        found = [first, *newest[-LOOKED:]]
    return found


def _slots(row: Row, base: datetime, now: datetime) -> Iterator[datetime]:
    """Yield the slots after `base` up to now, at most one more than `LOOKED`."""
    for _ in range(LOOKED + 1):
        following = _next(row, base)
        if following is None or following > now:
            return
        yield following
        base = following


def _next(row: Row, base: datetime) -> datetime | None:
    try:
        return cron_schedule.next_date(row["schedule"], base, row["timezone"])
    except HTTPException:
        return None
