"""Misfire: what a cron does about dates that were missed while no server ran.

Clients choose it by the keys `misfire` and `misfire_grace_seconds` of the cron's metadata.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

from starlette.exceptions import HTTPException

Missed = Literal["run_once", "skip", "run_all"]

# A date that is this late counts as missed. The scheduler itself is some seconds late.
GRACE_SECONDS = 60.0
MAX_GRACE_SECONDS = 30 * 24 * 3600.0
# `run_all` does not catch up older dates, which may be very many.
OLDEST = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Misfire:
    """What a cron does about missed dates.

    Attributes:
        missed: `run_once` runs once for all of them, `skip` not at all, `run_all` for each.
        grace: How late a date may be and still count as not missed.
    """

    missed: Missed = "run_once"
    grace: timedelta = timedelta(seconds=GRACE_SECONDS)


def check(metadata: Mapping[str, Any]) -> None:
    """Check the choice in a cron's metadata.

    Raises:
        HTTPException: (422) it is none.
    """
    missed, seconds = metadata.get("misfire", "run_once"), metadata.get("misfire_grace_seconds", 0)
    if missed not in get_args(Missed):
        raise HTTPException(422, "`misfire` must be run_once, skip or run_all")
    if not _is_grace(seconds):
        raise HTTPException(
            422, f"`misfire_grace_seconds` must be a number from 0 to {MAX_GRACE_SECONDS:.0f}"
        )


def of(metadata: Mapping[str, Any]) -> Misfire:
    """Return the choice in a cron's metadata; the default for what older crons may hold there."""
    missed: Any = metadata.get("misfire")
    seconds: Any = metadata.get("misfire_grace_seconds")
    return Misfire(
        missed if missed in get_args(Missed) else "run_once",
        timedelta(seconds=seconds if _is_grace(seconds) else GRACE_SECONDS),
    )


def _is_grace(seconds: Any) -> bool:
    return (
        type(seconds) in (int, float)
        and math.isfinite(seconds)
        and 0 <= seconds <= MAX_GRACE_SECONDS
    )
