"""Refusals: audit entries of refused requests, a bounded number of them.

A refused request changes nothing, so its entry has a transaction of its own. An attacker could fill the
disk with refusals. So of equal ones in a window only the first are written one by one. The end of the
window writes the number of the others in one entry.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from langgraph_runtime_sql.audit.entry import Actor, Note

logger = structlog.stdlib.get_logger(__name__)

WINDOW_SECONDS = 60.0
# Entries of equal refusals in a window, and the number of different ones that are told apart.
EACH = 20
DIFFERENT = 1000

Write = Callable[[Actor, Note], Awaitable[None]]
_Key = tuple[Actor, str, str, int | None]
_OTHERS: _Key = (Actor(), "refuse", "refused", None)


@dataclass(slots=True)
class _Count:
    note: Note
    written: int = 0
    omitted: int = 0


class Refusals:
    """Write the refusals of this process.

    Args:
        write: Writes one entry.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._counts: dict[_Key, _Count] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: set[asyncio.Task[None]] = set()

    async def record(self, actor: Actor, note: Note) -> None:
        """Write a refusal, or count it if enough equal ones were written in this window."""
        key: _Key = (actor, note.action, note.decision, note.status)
        if key not in self._counts and len(self._counts) >= DIFFERENT:
            key = _OTHERS
        count = self._counts.setdefault(key, _Count(note))
        self._start_window()
        if key is _OTHERS or count.written >= EACH:
            count.omitted += 1
            return
        count.written += 1
        await self._try(actor, note)

    async def flush(self) -> None:
        """End the window: write the numbers of the omitted refusals."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        counts, self._counts = self._counts, {}
        for (actor, *_), count in counts.items():
            if count.omitted:
                detail = {**count.note.detail, "repeated": count.omitted}
                await self._try(actor, replace(count.note, object_id=None, detail=detail))

    def _start_window(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(WINDOW_SECONDS, self._end_window)

    def _end_window(self) -> None:
        self._timer = None
        task = asyncio.get_running_loop().create_task(self.flush())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)

    async def _try(self, actor: Actor, note: Note) -> None:
        try:
            await self._write(actor, note)
        except Exception:
            # The refusal itself stands: the caller must get its answer without a database.
            logger.exception(
                "A refusal was not written to the audit log",
                action="audit_failed",
                route=actor.route,
                status=note.status,
            )
