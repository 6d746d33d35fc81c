"""Append events to Redis by a script: each once and in order, in one step."""

from collections.abc import Sequence
from hashlib import sha1
from importlib.resources import files
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

# The limit of one thread's stream, and of the runs whose newest attempt it records.
STREAM_BYTES = 32 * 2**20
RUNS = 500

# The script describes itself.
APPEND = files(__package__).joinpath("append.lua").read_text(encoding="utf-8")
_SHA = sha1(APPEND.encode(), usedforsecurity=False).hexdigest()


class Append(NamedTuple):
    """One call of the script.

    Attributes:
        stream: The key of a stream.
        meta: The key of the stream's metadata.
        origin: The origin that numbers the events.
        oldest: Whether earlier events of the origin are no longer kept, so that a hole is accepted.
        ttl: How many seconds Redis keeps both keys.
        arguments: Number, run, attempt, header, data and rank of each event.
    """

    stream: str
    meta: str
    origin: str
    oldest: bool
    ttl: int
    arguments: tuple[Any, ...]


async def append(redis: Redis, calls: Sequence[Append]) -> list[Any]:
    """Call the script in one round trip. Return each call's number and ranks, or its error.

    Raises:
        one of FAILURES: Redis does not answer.
    """
    answers = await _call(redis, calls)
    if any(isinstance(each, NoScriptError) for each in answers):
        # A restarted Redis has lost the script.
        await redis.script_load(APPEND)
        answers = await _call(redis, calls)
    return answers


async def _call(redis: Redis, calls: Sequence[Append]) -> list[Any]:
    pipeline: Any = redis.pipeline(transaction=False)
    for call in calls:
        limits = int(call.oldest), call.ttl, STREAM_BYTES, RUNS
        pipeline.evalsha(_SHA, 2, call.stream, call.meta, call.origin, *limits, *call.arguments)
    answers: list[Any] = await pipeline.execute(raise_on_error=False)
    return answers
