"""The thread that a run is on, as its server knows it."""

import sys
from collections.abc import Mapping
from typing import Any

import structlog
from httpx import HTTPError
from langchain_core.runnables import RunnableConfig
from langgraph_sdk import get_client
from langgraph_sdk.errors import LangGraphError

from contexts.policy_status import PolicyStatus

logger = structlog.stdlib.get_logger(__name__)

# Without a server around it, the SDK's client would start to import one.
_SERVER = "langgraph_api.server"
READ_ONLY = (PolicyStatus.LOCKED, PolicyStatus.ARCHIVED)


def thread_id(config: RunnableConfig) -> str | None:
    """The thread's id; None outside of threads."""
    found = (config.get("configurable") or {}).get("thread_id")
    return str(found) if found else None


async def metadata(config: RunnableConfig) -> Mapping[str, Any]:
    """The metadata of a run's thread; empty where there is no server, or no such thread.

    The server is asked on behalf of the run's user, without a network in between.
    """
    thread = thread_id(config)
    if thread is None or _SERVER not in sys.modules:
        return {}
    try:
        async with get_client() as client:
            found = await client.threads.get(thread)
    except (HTTPError, LangGraphError) as error:
        # The server's own gate stands before every run; this look at it is a second one.
        logger.warning(
            "Thread not read", action="thread_unread", thread_id=thread, error=str(error)
        )
        return {}
    return found.get("metadata") or {}


async def tell_website(config: RunnableConfig, website: str) -> None:
    """Write into a run's thread which company it is about.

    What the server makes of it is its own policy: it may close other threads about the same one.
    """
    thread = thread_id(config)
    if thread is None or _SERVER not in sys.modules:
        return
    try:
        async with get_client() as client:
            await client.threads.update(thread, metadata={"website": website})
    except (HTTPError, LangGraphError) as error:
        # The conversation goes on all the same; only its label is an older one.
        _unreachable("thread_not_labelled", thread, error)


def _unreachable(action: str, thread: str, error: Exception) -> None:
    logger.warning("Thread", action=action, thread_id=thread, error=str(error))


def is_read_only(of: Mapping[str, Any]) -> bool:
    """Whether a thread of such metadata takes nothing new."""
    return of.get("status") in READ_ONLY
