"""Progress: report how far long work is."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a phase of some work is.

    Attributes:
        phase: The work, such as `Copying`.
        done: Items that are done.
        total: Number of all items; 0 if it is not known.
        unit: What is counted: `bytes`, or a plural such as `rows`.
    """

    phase: str
    done: int
    total: int
    unit: str = "rows"


Report = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Show no progress."""
