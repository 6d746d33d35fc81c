"""Errors of a move."""

from collections.abc import Sequence

from langgraph_runtime_sql.errors import RuntimeSqlError


class MoveRefused(RuntimeSqlError):
    """The two databases do not allow a move; nothing was moved."""


class MoveFinished(MoveRefused):
    """The move was finished before."""


class Unmovable(RuntimeSqlError):
    """Postgres cannot hold some rows.

    Args:
        problems: Messages about the first of these rows, with table and id.
        count: Number of all these rows.
    """

    def __init__(self, problems: Sequence[str], count: int) -> None:
        more = f"\n  and {count - len(problems)} more" if count > len(problems) else ""
        super().__init__(
            "Postgres cannot hold these rows, so nothing was switched over. Change or delete them "
            "in the source (serve it once more), then move again:\n  "
            + "\n  ".join(problems)
            + more
        )


class MoveFailed(RuntimeSqlError):
    """The move could not be completed; the source is unchanged."""
