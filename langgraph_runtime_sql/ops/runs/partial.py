"""Partial answers: what a run has streamed of messages that its thread's state does not have.

A run that is stopped or fails in the middle of a message leaves no checkpoint with it. The event log has it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.events.event import START, Event
from langgraph_runtime_sql.events.stream_key import StreamKey
from langgraph_runtime_sql.gate import reads
from langgraph_runtime_sql.gate.operations import THREAD_READ
from langgraph_runtime_sql.ops.arguments import as_uuid
from langgraph_runtime_sql.ops.runs import rows as run_rows
from langgraph_runtime_sql.ops.threads import long_values
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.statuses import RunStatus

Json = dict[str, Any]
MOST_BYTES = 32 * 2**20
_PIECES = "messages"
_WHOLE = ("messages/partial", "messages/complete")
# The blocks of a message that a cut leaves open, by the kind of their pieces. A tool call that was cut is
# an invalid one, as langchain says.
_OPEN = {"text-delta": "text", "reasoning-delta": "reasoning"}


async def streamed(thread_id: Any, run_id: Any, ctx: Any = None) -> list[Any]:
    """Return the messages that a run has streamed and that its thread's state does not have.

    They are in the order in which they began, as far as the run's events are kept. A run that has
    succeeded has none.

    Raises:
        HTTPException: (404) there is no such run in the thread, or it is hidden.
    """
    thread, run = as_uuid(thread_id, "thread ID"), as_uuid(run_id, "run ID")
    visible = await reads.admit(ctx, THREAD_READ, {"thread_id": thread})

    def fn(conn: Connection) -> tuple[Row, Row]:
        found = thread_rows.require(conn, thread, visible)
        row = run_rows.find_in_thread(conn, run, thread)
        if row is None:
            raise HTTPException(404, f"Run with ID {run} not found")
        long_values.complete(conn, [found])
        return found, row

    here = runtime.current()
    found, row = await here.database.read(fn)
    if row["status"] == RunStatus.SUCCESS:
        return []
    collected = _Collected(_ids(found["values"]))
    key, after, is_more = StreamKey.of_run(row), START, True
    while is_more:
        page = await here.bus.followers.read_log(key, after)
        await asyncio.to_thread(collected.add, page.events)
        after, is_more = page.position, page.more
    return await asyncio.to_thread(collected.messages)


def _ids(values: Any) -> set[str]:
    """Return the ids of the messages of a state, in whichever of its lists they are."""
    lists = [each for each in values.values() if isinstance(each, list)] if values else []
    return {
        str(each["id"])
        for some in lists
        for each in some
        if isinstance(each, dict) and "id" in each
    }


def _is_shown(mode: str, namespace: list[str]) -> bool:
    """Return whether an event is of what clients show of a run: the messages of the graph and of its agents.

    React's hook shows those of a subgraph that is a node, and not those of one that a tool has called.
    """
    is_internal = any(each.startswith(("tools:", "task:")) for each in namespace)
    return mode in (_PIECES, *_WHOLE) and len(namespace) <= 1 and not is_internal


class _Collected:
    """The messages of a run, as its events tell them.

    Args:
        known: The ids of messages that are not wanted.
    """

    def __init__(self, known: set[str]) -> None:
        self._known, self._attempt = known, 0
        # By id, in the order in which they began.
        self._found: dict[str, _Whole | _Chunks | _Blocks] = {}
        # Pieces of protocol 2 name no message: they are of the one that its node began last.
        self._open: dict[Any, _Blocks] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Add events in their order.

        Raises:
            HTTPException: (422) the messages are too large.
        """
        for event in events:
            mode, *namespace = event.name.split("|")
            if not _is_shown(mode, namespace):
                continue
            if event.attempt > self._attempt:
                # It streams again what the attempt before has streamed.
                self._attempt = event.attempt
                self._found.clear()
                self._open.clear()
            self._add(mode, namespace, orjson.loads(event.data), len(event.data))
        if sum(each.size for each in self._found.values()) > MOST_BYTES:
            raise HTTPException(
                422, f"The run has streamed more than {MOST_BYTES} bytes of unsaved messages"
            )

    def _add(self, mode: str, namespace: list[str], data: Any, size: int) -> None:
        if mode in _WHOLE:
            for message in data:
                self._put(message, _Whole(message, size))
        elif isinstance(data, list):
            message = data[0]
            if not str(message.get("type")).endswith("Chunk"):
                self._put(message, _Whole(message, size))
            elif isinstance(begun := self._found.get(str(message.get("id"))), _Chunks):
                begun.add(message, size)
            else:
                self._put(message, _Chunks(message, size))
        else:
            params = data["params"]
            piece, node = params["data"], (*namespace, params.get("node"))
            if piece.get("event") == "message-start":
                self._open[node] = _Blocks()
                self._put(piece, self._open[node])
            if node in self._open:
                self._open[node].add(piece, size)

    def _put(self, message: Json, found: "_Whole | _Chunks | _Blocks") -> None:
        identifier = str(message.get("id"))
        if identifier not in self._known:
            self._found[identifier] = found

    def messages(self) -> list[Any]:
        """Return the messages as JSON, as a state has them."""
        made = [each.message() for each in self._found.values()]
        return [json_codec.finished(each) for each in made if each is not None]


class _Whole:
    """A message as an event has it, which a later one replaces."""

    def __init__(self, message: Json, size: int) -> None:
        self._message, self.size = message, size

    def message(self) -> Any:
        """Return the message."""
        return self._message


class _Chunks:
    """A message in pieces, as the mode `messages-tuple` streams them."""

    def __init__(self, first: Json, size: int) -> None:
        self._chunks, self.size = [first], size

    def add(self, chunk: Json, size: int) -> None:
        """Add a piece."""
        self._chunks.append(chunk)
        self.size += size

    def message(self) -> Any:
        """Return the message."""
        from langchain_core.messages import AIMessageChunk, message_chunk_to_message
        from langchain_core.messages.ai import add_ai_message_chunks

        first, *rest = (AIMessageChunk.model_validate(each) for each in self._chunks)
        return message_chunk_to_message(add_ai_message_chunks(first, *rest) if rest else first)


class _Blocks:
    """A message in pieces of its blocks, as protocol 2 streams them."""

    def __init__(self) -> None:
        from langchain_core.language_models.chat_model_stream import ChatModelStream

        self._stream, self.size = ChatModelStream(), 0
        # The kinds of the blocks that have begun to have content and not ended, by index.
        self._unfinished: dict[int, str] = {}

    def add(self, piece: Mapping[str, Any], size: int) -> None:
        """Add a piece."""
        self.size += size
        index = piece.get("index")
        kind = _OPEN.get((piece.get("delta") or {}).get("type", ""))
        if index is not None and kind is not None:
            self._unfinished[index] = kind
        if piece.get("event") == "content-block-finish":
            self._unfinished.pop(index, None)  # type: ignore[arg-type]  # without an index, nothing
        if piece.get("event") != "error":
            self._stream.dispatch(piece)

    def message(self) -> Any:
        """Return the message, also one that was cut, or None if it has no content."""
        if not self._stream.done:
            for index, kind in self._unfinished.items():
                # An empty block is filled with what its pieces have told.
                end = {"event": "content-block-finish", "index": index}
                self._stream.dispatch({**end, "content": {"type": kind, kind: ""}})
            self._stream.dispatch({"event": "message-finish"})
        found = self._stream.output_message
        return found if found is not None and (found.content or found.tool_calls) else None
