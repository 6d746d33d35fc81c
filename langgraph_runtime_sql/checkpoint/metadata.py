"""Metadata: the facts that a checkpoint carries beside its values."""

import math
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS, CheckpointMetadata

# The place of a run's beginning or of a task; rows state the place of a checkpoint. A fork would
# bear the id of the checkpoint that it began from. langgraph's own savers do not store these either.
_PLACE = frozenset(EXCLUDED_METADATA_KEYS)
# Facts about a request, not about its results.
_REQUEST = frozenset(
    {
        "langgraph_request_id",
        "langgraph_auth_user",
        "langgraph_auth_user_id",
        "langgraph_auth_permissions",
    }
)
_DEPTH = 32


def checkpoint_metadata(
    config: RunnableConfig, metadata: CheckpointMetadata, run_id: str | None = None
) -> CheckpointMetadata:
    """Merge the caller's `configurable` and `metadata` under the checkpoint's own, as plain JSON.

    Values without a JSON form are left out.

    Args:
        config: The configuration that the checkpoint is written with.
        metadata: The graph's metadata of the checkpoint.
        run_id: The run that writes; it replaces any other `run_id`.
    """
    # The claim states the run.
    configurable = {k: v for k, v in config.get("configurable", {}).items() if k != "run_id"}
    merged: dict[str, Any] = {
        key: value
        for key, value in {**configurable, **(config.get("metadata") or {})}.items()
        if not key.startswith("__") and key not in _PLACE
    }
    merged.update(metadata)
    if run_id is not None:
        merged["run_id"] = run_id
    return cast(
        CheckpointMetadata, dict(_entries((k, v) for k, v in merged.items() if k not in _REQUEST))
    )


def matches(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether `metadata` has every entry of `wanted`; an absent one counts as None."""
    return all(metadata.get(key) == value for key, value in wanted.items())


def _entries(items: Iterator[tuple[Any, Any]], depth: int = 0) -> Iterator[tuple[str, Any]]:
    for key, value in items:
        plain, ok = _plain(value, depth)
        if ok and isinstance(key, str):
            yield key, plain


def _plain(value: Any, depth: int) -> tuple[Any, bool]:
    """Return `value` as JSON, and whether it has such a form."""
    if value is None or isinstance(value, str | int):
        return value, True
    if isinstance(value, float):
        return value, math.isfinite(value)
    if isinstance(value, UUID | date):
        return str(value), True
    if depth == _DEPTH:
        return None, False
    if isinstance(value, Mapping):
        return dict(_entries(iter(value.items()), depth + 1)), True
    if isinstance(value, list | tuple):
        found = (_plain(each, depth + 1) for each in value)
        return [plain for plain, ok in found if ok], True
    return None, False
