"""What is wrong with the Redis that several processes share."""

import asyncio
from uuid import uuid4

from redis.exceptions import ResponseError

from langgraph_runtime_sql.errors import BadRedis
from langgraph_runtime_sql.events.redis.link import FAILURES, Link, refuse
from langgraph_runtime_sql.events.redis.url import check_url, shown
from threadhold.admin.findings import Finding

PATIENCE_SECONDS = 5.0
REMEDY = "runs go on without it, but processes hear of each other late: bring it back"


def examine(url: str, prefix: str | None) -> list[Finding]:
    """Everything wrong with the Redis at `url`. Writes one key, which goes after a second.

    Raises:
        BadRedis: the URL names none.
    """
    check_url(url)
    return asyncio.run(_examine(url, prefix or "threadhold"))


async def _examine(url: str, prefix: str) -> list[Finding]:
    link = Link(url, prefix, seconds=PATIENCE_SECONDS)
    client = link.client(answer_seconds=PATIENCE_SECONDS)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await refuse(client, url)
            await client.set(link.name(f"doctor:{uuid4().hex}"), "1", px=1_000)
    except BadRedis as error:
        return [Finding("redis", shown(url), str(error), "name another in REDIS_URL")]
    except FAILURES as error:
        refused = isinstance(error, ResponseError)
        why = f"it does not take a key: {error}" if refused else f"it does not answer: {error!r}"
        return [Finding("redis", shown(url), why, REMEDY)]
    finally:
        await link.close()
    return []
