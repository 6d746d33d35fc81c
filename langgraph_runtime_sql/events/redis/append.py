"""Append: the script by which Redis takes events, each once and in order, in one step."""

from collections.abc import Sequence
from hashlib import sha1
from importlib.resources import files
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

# What one thread's stream may hold in Redis, and of how many runs it knows who owns them.
STREAM_BYTES = 32 * 2**20
RUNS = 500

# Beside this module, and described there.
APPEND = files(__package__).joinpath("append.lua").read_text(encoding="utf-8")
_SHA = sha1(APPEND.encode(), usedforsecurity=False).hexdigest()


class Append(NamedTuple):
    """One call of the script.

    Attributes:
        stream: The key of a stream.
        meta: The key of what is known of it.
        origin: Whose numbers the events have.
        oldest: Whether what came before is not kept any more: there may be a hole.
        ttl: For how many seconds Redis keeps both keys.
        arguments: Number, run, attempt, header, data and rank of each event.
    """

    stream: str
    meta: str
    origin: str
    oldest: bool
    ttl: int
    arguments: tuple[Any, ...]


async def append(redis: Redis, calls: Sequence[Append]) -> list[Any]:
    """The answers to calls, in one round trip: a number and ranks each, or what Redis raised.

    Raises:
        one of FAILURES: it does not answer.
    """
    answers = await _ask(redis, calls)
    if any(isinstance(each, NoScriptError) for each in answers):
        # A Redis that was started anew has to be taught it.
        await redis.script_load(APPEND)
        answers = await _ask(redis, calls)
    return answers


async def _ask(redis: Redis, calls: Sequence[Append]) -> list[Any]:
    pipeline: Any = redis.pipeline(transaction=False)
    for call in calls:
        limits = int(call.oldest), call.ttl, STREAM_BYTES, RUNS
        pipeline.evalsha(_SHA, 2, call.stream, call.meta, call.origin, *limits, *call.arguments)
    answers: list[Any] = await pipeline.execute(raise_on_error=False)
    return answers
