"""Sources: what an import reads from."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

Row = Mapping[str, Any]
"""An object as the LangGraph API shows it; dates and ids may also be Python's."""


class States(Protocol):
    """The checkpoints of a source: what langgraph's savers have for reading."""

    def list(self, config: RunnableConfig | None, /) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread, in all namespaces."""

    def get_tuple(self, config: RunnableConfig, /) -> CheckpointTuple | None:
        """Return a checkpoint with the writes onto it."""


class Item(NamedTuple):
    """An item of the long-term store."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]


class Source(Protocol):
    """What an import reads. Each method reads anew, so that an interrupted import can go on.

    Attributes:
        has_threads: Whether it knows more of threads than their checkpoints: metadata, status, dates.
    """

    has_threads: bool

    @property
    def states(self) -> States:
        """The checkpoints."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """What it has and an import does not take: the reason, and how much."""

    def assistants(self) -> Iterator[tuple[Row, Sequence[Row]]]:
        """Yield each assistant with its versions."""

    def threads(self) -> Iterator[Row]:
        """Yield the threads; without `has_threads`, only their `thread_id`."""

    def paths(self, thread_id: str) -> Mapping[tuple[str, str, str], str]:
        """Return the paths of a thread's tasks, by namespace, checkpoint and task, where they are known."""

    def items(self) -> Iterator[Item]:
        """Yield the items of the store."""

    def crons(self) -> Iterator[Row]:
        """Yield the crons."""
