"""Finding: the threads in which some words were said, for a person who looks for a conversation."""

import time
from collections.abc import Iterator
from typing import Any

from starlette.exceptions import HTTPException

from langgraph_runtime_sql import json_codec, runtime
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.events.changes import FIELDS
from langgraph_runtime_sql.gate import reads
from langgraph_runtime_sql.gate.caller import caller
from langgraph_runtime_sql.gate.operations import THREAD_SEARCH
from langgraph_runtime_sql.ops.threads import search
from langgraph_runtime_sql.search import examined_search

# Characters of the words, and of what is shown around the first of them, also before it.
LONGEST, EXCERPT, BEFORE = 200, 120, 12
# States are encrypted, and stored as patches: no index has their words. So the newest threads are read.
MOST_READ, MOST_FOUND, PAGE = 500, 20, 50
SECONDS = 2.0
# Characters of one state that are read.
STATE = 1_000_000
# Fields of messages and blocks, which have a type, that a person does not read.
_UNREAD = frozenset(
    (
        *("id", "type", "role", "name", "tool_call_id", "signature"),
        *("data", "base64", "url", "mime_type"),
        *("response_metadata", "usage_metadata", "additional_kwargs"),
    )
)


async def find(text: str, ctx: Any = None) -> dict[str, Any]:
    """Return the newest threads whose title or state has all words of a text, in any case.

    It reads at most `MOST_READ` threads that a search would show, for at most `SECONDS`.

    Args:
        text: Words, divided by spaces.
        ctx: The request's context.

    Returns:
        `threads`: at most `MOST_FOUND`, each with the fields of a list and an `excerpt`, or null if
        its title alone has the words; `is_complete`: whether all threads were read.

    Raises:
        HTTPException: the handler refuses; (422) there are no words, they are too long, or the
            handler limits searches by values that the database cannot compare.
    """
    words = text.casefold().split()
    if not words or len(text) > LONGEST:
        raise HTTPException(422, f"`text` must have words, and at most {LONGEST} characters")
    value = search.as_asked(None, None, None, MOST_READ, 0)
    visible = await reads.admit(ctx, THREAD_SEARCH, value)
    if examined_search.wanted(value["values"]):
        raise HTTPException(
            422,
            "The authorization handler limits searches by `values` that the database cannot compare.",
        )
    requester = caller(ctx)

    def fn(conn: Connection) -> dict[str, Any]:
        query = search.query_of(conn, value, visible, requester).sorted_by(None, ascending=False)
        query = query.only([*FIELDS, "values"])
        until = time.monotonic() + SECONDS
        found: list[dict[str, Any]] = []
        for start in range(0, MOST_READ, PAGE):
            rows = conn.fetchall(query.page(), {**query.parameters, "limit": PAGE, "start": start})
            for row in rows:
                if time.monotonic() > until or len(found) == MOST_FOUND:
                    return {"threads": found, "is_complete": False}
                search.make_whole(conn, row)
                said = _found_in(row, words)
                if said is not None:
                    shown = {name: row[name] for name in FIELDS}
                    found.append({**shown, "excerpt": said or None})
            if len(rows) < PAGE:
                return {"threads": found, "is_complete": True}
        return {"threads": found, "is_complete": False}

    advice = "Search for threads by entries of their metadata."
    found: dict[str, Any] = json_codec.plain(await runtime.current().database.search(fn, advice))
    return found


def _found_in(row: dict[str, Any], words: list[str]) -> str | None:
    """Return what a thread says around the words; empty if its title has them all; None if it has not."""
    title = str((row["metadata"] or {}).get("title") or "").casefold()
    left = {word for word in words if word not in title}
    if not left:
        return ""
    first = ""
    for said in _texts(row["values"]):
        folded = said.casefold()
        here = {word for word in left if word in folded}
        if here and not first:
            first = _around(said, folded, next(word for word in words if word in here))
        left -= here
        if not left:
            return first
    return None


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a state that a person reads, at most `STATE` characters of them."""
    waiting, left = [value], STATE
    while waiting and left > 0:
        here = waiting.pop()
        if isinstance(here, str):
            left -= len(here)
            yield here[:STATE]
        elif isinstance(here, dict):
            unread = _UNREAD if "type" in here else frozenset()
            waiting += [each for name, each in reversed(here.items()) if name not in unread]
        elif isinstance(here, list):
            waiting += reversed(here)


def _around(text: str, folded: str, word: str) -> str:
    """Return the part of a text around a word, in one line."""
    # Folding may change the length of a text: then the place is about right.
    start = max(0, folded.index(word) - BEFORE)
    part = " ".join(text[start : start + EXCERPT].split())
    return f"{'…' if start else ''}{part}{'…' if start + EXCERPT < len(text) else ''}"
