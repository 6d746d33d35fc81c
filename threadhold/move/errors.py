"""What can keep data from being moved."""

from collections.abc import Sequence

from langgraph_runtime_sql.errors import RuntimeSqlError


class MoveRefused(RuntimeSqlError):
    """Nothing is moved between these two databases as they are."""


class MoveFinished(MoveRefused):
    """It has been moved already."""


class Unmovable(RuntimeSqlError):
    """The target cannot hold some rows.

    Args:
        problems: One sentence each, with table and id: the first ones.
        count: How many there are.
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
    """The move could not be completed; the source is as it was."""
