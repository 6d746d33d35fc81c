"""The thread of a run: its metadata, read and written through the API of the server in this process."""

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from httpx import HTTPError
from langchain_core.runnables import RunnableConfig
from langgraph_sdk import get_client
from langgraph_sdk.client import ThreadsClient
from langgraph_sdk.errors import LangGraphError

from my_agent.keys import WAITING_QUESTIONS
from my_agent.threads.policy_status import PolicyStatus

logger = structlog.stdlib.get_logger(__name__)

READ_ONLY = (PolicyStatus.LOCKED, PolicyStatus.ARCHIVED)


def is_served() -> bool:
    """Return whether this process has a server. Without one, the SDK's client would import one."""
    return "langgraph_api.server" in sys.modules


def thread_id(config: RunnableConfig) -> str | None:
    """Return the id of the run's thread; None outside of threads."""
    found = (config.get("configurable") or {}).get("thread_id")
    return str(found) if found else None


def is_early(config: RunnableConfig, asking: Mapping[str, Any] | None) -> bool:
    """Return whether a run was created before the waiting question, which has an id, was asked.

    The second of two clicks at one question must not answer the next question. The thread policy
    writes the questions that waited; without the policy, this is unknown and counts as no.
    """
    waited = (config.get("configurable") or {}).get(WAITING_QUESTIONS)
    return asking is not None and isinstance(waited, list) and asking.get("id") not in waited


async def metadata(config: RunnableConfig) -> Mapping[str, Any]:
    """Return the metadata of the run's thread; empty without a server or such a thread.

    The server itself rejects runs on read-only threads; the check of what is returned is a second one.
    """
    found = await _asked("thread_unread", config, lambda threads, thread: threads.get(thread))
    return (found or {}).get("metadata") or {}


async def set_website(config: RunnableConfig, website: str) -> None:
    """Write the company's website into the metadata of the run's thread.

    The server's thread policy may then close other threads of the same company. Without an answer the
    conversation continues; only the thread's label is outdated.
    """
    label = {"website": website}
    await _asked(
        "thread_not_labelled", config, lambda of, thread: of.update(thread, metadata=label)
    )


async def _asked(
    failure: str, config: RunnableConfig, ask: Callable[[ThreadsClient, str], Awaitable[Any]]
) -> Mapping[str, Any] | None:
    """Ask the server in this process, on behalf of the run's user; None if it does not answer."""
    thread = thread_id(config)
    if thread is None or not is_served():
        return None
    try:
        async with get_client() as client:
            found: Mapping[str, Any] = await ask(client.threads, thread)
    except (HTTPError, LangGraphError) as error:
        problem = type(error).__name__
        logger.warning("Thread request failed", action=failure, thread_id=thread, error=problem)
        return None
    return found


def is_read_only(of: Mapping[str, Any]) -> bool:
    """Return whether a thread with this metadata accepts no new messages."""
    return of.get("status") in READ_ONLY
