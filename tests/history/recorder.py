"""The recorder: requests and answers of clients, written to disk as they happen."""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Document = dict[str, Any]
Outcome = Literal["ok", "fail", "info"]


@dataclass(frozen=True)
class Operation:
    """One request of a client and its outcome.

    Attributes:
        kind: Such as `run` or `patch`; operations of the nemesis are `fault`.
        client: The number of the client.
        process: The number of the server.
        begun: The time of the request, in seconds of the monotonic clock.
        ended: The time of the answer; None without an answer.
        outcome: `ok`: acknowledged. `fail`: certainly not done. `info`: unknown.
    """

    number: int
    kind: str
    client: int = 0
    process: int = 0
    begun: float = 0.0
    ended: float | None = None
    outcome: Outcome = "info"
    asked: Document = field(default_factory=dict)
    answer: Document = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    def __str__(self) -> str:
        shown = json.dumps({**self.asked, **self.answer})
        return (
            f"#{self.number} {self.kind} by client {self.client} at process {self.process}, "
            f"{self.begun:.3f} to {self.ended or 0:.3f}: {self.outcome} {shown[:600]}"
        )


class Pending:
    """An operation that has begun; its outcome stays unknown until one of the methods is called."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.outcome: Outcome = "info"
        self.answer: Document = {}

    def ok(self, **answer: Any) -> None:
        self.outcome, self.answer = "ok", answer

    def fail(self, **answer: Any) -> None:
        self.outcome, self.answer = "fail", answer

    def info(self, **answer: Any) -> None:
        self.outcome, self.answer = "info", answer


class Recorder:
    """Writes a line when an operation begins and another one when it ends.

    Args:
        path: The file; existing lines are kept.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._numbers = itertools.count(1)

    @contextmanager
    def operation(
        self, kind: str, client: int = 0, process: int = 0, **asked: Any
    ) -> Iterator[Pending]:
        """Record the operation in the block; without an outcome it ends as `info`."""
        pending = Pending(next(self._numbers))
        self._write(
            {
                "number": pending.number,
                "kind": kind,
                "client": client,
                "process": process,
                "begun": time.monotonic(),
                "asked": asked,
            }
        )
        try:
            yield pending
        finally:
            self._write(
                {
                    "number": pending.number,
                    "ended": time.monotonic(),
                    "outcome": pending.outcome,
                    "answer": pending.answer,
                }
            )

    def _write(self, line: Document) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> list[Operation]:
    """Read the operations of a file, in the order they began."""
    found: dict[int, Document] = {}
    for line in path.read_text().splitlines():
        part = json.loads(line)
        found.setdefault(part["number"], {}).update(part)
    return [Operation(**each) for each in found.values()]
