"""A host's own checkpointer keeps its checkpoints elsewhere: tell it what happens to threads."""

from typing import Any
from uuid import UUID


async def _get() -> Any | None:
    from langgraph_api import config
    from langgraph_api._checkpointer import get_checkpointer

    return await get_checkpointer() if config.USE_CUSTOM_CHECKPOINTER else None


async def delete_thread(thread_id: UUID) -> None:
    """A thread is gone."""
    if (checkpointer := await _get()) is not None:
        await checkpointer.adelete_thread(str(thread_id))


async def copy_thread(source: UUID, target: UUID) -> None:
    """A thread was copied."""
    if (checkpointer := await _get()) is not None:
        await checkpointer.acopy_thread(str(source), str(target))


async def prune_thread(thread_id: UUID) -> None:
    """A thread keeps only its newest checkpoint."""
    if (checkpointer := await _get()) is not None:
        await checkpointer.aprune([str(thread_id)], strategy="keep_latest")


async def delete_run(run_id: UUID) -> None:
    """A run was rolled back or deleted."""
    if (checkpointer := await _get()) is not None:
        await checkpointer.adelete_for_runs([str(run_id)])
