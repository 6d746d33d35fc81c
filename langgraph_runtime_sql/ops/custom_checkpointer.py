"""The host's own checkpointer, if configured: apply deletions and copies to it, too."""

from typing import Any
from uuid import UUID


async def _get() -> Any | None:
    from langgraph_api import config
    from langgraph_api._checkpointer import get_checkpointer

    return await get_checkpointer() if config.USE_CUSTOM_CHECKPOINTER else None


async def delete_thread(thread_id: UUID) -> None:
    """Delete the checkpoints of a thread."""
    if (checkpointer := await _get()) is not None:
        await checkpointer.adelete_thread(str(thread_id))


async def copy_thread(source: UUID, target: UUID) -> None:
    """Copy the checkpoints of a thread."""
    if (checkpointer := await _get()) is not None:
        await checkpointer.acopy_thread(str(source), str(target))


async def prune_thread(thread_id: UUID) -> None:
    """Delete all checkpoints of a thread but the newest."""
    if (checkpointer := await _get()) is not None:
        await checkpointer.aprune([str(thread_id)], strategy="keep_latest")


async def delete_run(run_id: UUID) -> None:
    """Delete the checkpoints of a run."""
    if (checkpointer := await _get()) is not None:
        await checkpointer.adelete_for_runs([str(run_id)])
