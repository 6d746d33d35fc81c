"""Doctor for Redis: examine the Redis through which processes exchange events."""

import asyncio

from redis.exceptions import ResponseError

from langgraph_runtime_sql.errors import BadRedis
from langgraph_runtime_sql.events.redis.link import FAILURES, Link, refuse
from langgraph_runtime_sql.events.redis.url import check_url, shown
from threadhold.admin.findings import Finding

TIMEOUT_SECONDS = 5.0
REMEDY = "bring it back; until then processes exchange events through Postgres, a little later"


def examine(url: str, prefix: str | None) -> list[Finding]:
    """Return all findings about the Redis at `url`. Stores nothing in it.

    Raises:
        BadRedis: the URL is invalid.
    """
    check_url(url)
    return asyncio.run(_examine(url, prefix or "threadhold"))


async def _examine(url: str, prefix: str) -> list[Finding]:
    link = Link(url, prefix, seconds=TIMEOUT_SECONDS)
    client = link.client()
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await refuse(client, url)
            await client.publish(link.channel("doctor"), "")
    except BadRedis as error:
        return [Finding("redis", shown(url), str(error), "name another in REDIS_URL")]
    except FAILURES as error:
        refused = isinstance(error, ResponseError)
        why = f"it refuses messages: {error}" if refused else f"it does not answer: {error!r}"
        return [Finding("redis", shown(url), why, REMEDY)]
    finally:
        await link.close()
    return []
