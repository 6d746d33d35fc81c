"""The schedules of crons: next dates, time zones and end times."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from starlette.exceptions import HTTPException

# Limits the time to parse a schedule. A schedule that lists all values of each field is shorter.
SCHEDULE_LENGTH = 1000


def next_date(schedule: Any, base: datetime, timezone: str | None) -> datetime:
    """Return the first date of a schedule after `base`.

    Raises:
        HTTPException: (422) invalid schedule or time zone, or no further date.
    """
    from langgraph_api.utils import next_cron_date

    if timezone is not None:
        check_timezone(timezone)
    if not isinstance(schedule, str) or len(schedule) > SCHEDULE_LENGTH:
        raise HTTPException(
            422, f"Invalid cron schedule: expected {SCHEDULE_LENGTH} characters at most"
        )
    try:
        found: datetime = next_cron_date(schedule, base, timezone=timezone)
    except (ValueError, LookupError) as error:
        raise HTTPException(
            422,
            f"Invalid cron schedule: {schedule!r}: {str(error).rstrip('.')}. Expected minute, hour, "
            "day of month, month and day of week, such as '*/5 * * * *'.",
        ) from error
    return found


def check_timezone(timezone: str) -> None:
    """Check that a time zone is known.

    Raises:
        HTTPException: (422) it is not.
    """
    try:
        ZoneInfo(timezone)
    except (ValueError, LookupError, OSError) as error:
        # Time zones are files: the name of a folder, or too long a name, raises OSError.
        raise HTTPException(
            422,
            f"Invalid timezone: {timezone!r}. Expected an IANA name, such as 'America/New_York'.",
        ) from error


def end_date(value: Any) -> datetime | None:
    """Return an end time, parsed if it is text, in UTC unless it names a time zone.

    Raises:
        HTTPException: (422) it is not a date.
    """
    if value is None:
        return None
    try:
        parsed = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError) as error:
        raise HTTPException(
            422, f"Invalid end_time: {value!r}. Expected an ISO 8601 date and time."
        ) from error
