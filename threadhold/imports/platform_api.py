"""Platform API: read a LangGraph server over HTTP, with langgraph's own SDK.

The API gives states as JSON. A state is stored again as a checkpoint whose next nodes are those that
the server names, so that a thread that waits for an answer goes on after it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
from langchain_core.messages import messages_from_dict
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from langgraph.types import Interrupt
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import APIError

from threadhold.imports.errors import CannotImport
from threadhold.imports.sources import Item, Row, Source

PAGE = 100
# States are large.
STATES = 20
SECONDS = 60.0
_MESSAGES = frozenset({"ai", "function", "human", "remove", "system", "tool"})
# The channel and the node of an input, which is due in the first checkpoint of a run.
_INPUT = "__start__"


@contextmanager
def opened(url: str) -> Iterator[Source]:
    """Open a server. `LANGSMITH_API_KEY` authenticates, as for the SDK.

    Raises:
        CannotImport: it cannot be reached, or refuses.
    """
    with get_sync_client(url=url, timeout=SECONDS) as client:
        try:
            yield PlatformApi(client)
        except (httpx.HTTPError, APIError) as error:
            raise CannotImport(
                f"{url} cannot be read: {str(error) or type(error).__name__}"
            ) from error


def _pages(ask: Callable[..., Any], *args: Any, **given: Any) -> Iterator[Any]:
    """Yield what a search finds, page by page."""
    offset = 0
    while page := ask(*args, limit=PAGE, offset=offset, **given):
        # Store searches name their list.
        page = page if isinstance(page, list) else next(iter(page.values()))
        yield from page
        if len(page) < PAGE:
            return
        offset += len(page)


class PlatformApi:
    """A server as a `Source`."""

    has_threads = True

    def __init__(self, client: Any) -> None:
        self._client = client
        self.states = ApiStates(client.threads)
        self.left_out: Mapping[str, int] = {}

    def assistants(self) -> Iterator[tuple[Row, Sequence[Row]]]:
        """Yield each assistant with its versions."""
        here = self._client.assistants
        for each in _pages(here.search):
            yield each, list(_pages(here.get_versions, each["assistant_id"]))

    def threads(self) -> Iterator[Row]:
        """Yield the threads."""
        yield from _pages(self._client.threads.search, sort_by="created_at", sort_order="asc")

    def paths(self, thread_id: str) -> Mapping[tuple[str, str, str], str]:
        """Return nothing: the API does not show where a task stands."""
        return {}

    def items(self) -> Iterator[Item]:
        """Yield the items of the store."""
        store = self._client.store
        for namespace in _pages(store.list_namespaces):
            for each in _pages(store.search_items, namespace):
                # A search also finds what lies below.
                if each["namespace"] == namespace:
                    yield Item(tuple(namespace), each["key"], each["value"])

    def crons(self) -> Iterator[Row]:
        """Yield the crons."""
        yield from _pages(self._client.crons.search)


class ApiStates:
    """The states of a server's threads, as checkpoints. It has the methods of `sources.States`."""

    def __init__(self, threads: Any) -> None:
        self._threads = threads

    def list(self, config: RunnableConfig | None) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread, in all namespaces that its tasks name."""
        thread_id = (config or {})["configurable"]["thread_id"]
        waiting, seen = [""], {""}
        while waiting:
            ns = waiting.pop()
            for state in self._history(thread_id, ns):
                yield _tuple(thread_id, state)
                for task in state["tasks"]:
                    below = (task.get("checkpoint") or {}).get("checkpoint_ns")
                    if below and below not in seen:
                        seen.add(below)
                        waiting.append(below)

    def _history(self, thread_id: str, ns: str) -> Iterator[Any]:
        before: Any = None
        place = {"checkpoint": {"checkpoint_ns": ns}} if ns else {}
        while True:
            page = self._threads.get_history(thread_id, limit=STATES, before=before, **place)
            yield from page
            if len(page) < STATES:
                return
            before = page[-1]["checkpoint"]

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint with the writes onto it."""
        wanted = config["configurable"]
        place = {key: wanted.get(key, "") for key in ("checkpoint_id", "checkpoint_ns")}
        thread_id = wanted["thread_id"]
        state = self._threads.get_state(thread_id, checkpoint={**place, "thread_id": thread_id})
        return _tuple(thread_id, state)


def _tuple(thread_id: str, state: Mapping[str, Any]) -> CheckpointTuple:
    place, parent = state["checkpoint"], state.get("parent_checkpoint")
    return CheckpointTuple(
        config=_config(thread_id, place),
        checkpoint=_checkpoint(state),
        metadata=state["metadata"] or CheckpointMetadata(),
        parent_config=_config(thread_id, parent) if parent else None,
        pending_writes=[write for task in state["tasks"] for write in _writes(task)],
    )


def _config(thread_id: str, place: Mapping[str, Any]) -> RunnableConfig:
    ns, checkpoint_id = place.get("checkpoint_ns") or "", place["checkpoint_id"]
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": ns,
            "checkpoint_id": checkpoint_id,
        }
    }


def _checkpoint(state: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint with a state's values, in which its next nodes are due."""
    values = state["values"]
    channels = {
        name: _revived(value)
        for name, value in (values if isinstance(values, dict) else {"__root__": values}).items()
    }
    # A node of a compiled graph is due if its channel is newer than what the node has seen.
    channels |= {f"branch:to:{name}": None for name in state["next"] if name != _INPUT}
    if _INPUT in state["next"]:
        given = [task.get("result") for task in state["tasks"] if task["name"] == _INPUT]
        channels[_INPUT] = _revived(next(filter(None, given), {}))
    version = f"{max(1, int((state['metadata'] or {}).get('step') or 0) + 2):032}.{0:016}"
    return Checkpoint(
        v=4,
        id=state["checkpoint"]["checkpoint_id"],
        ts=state["created_at"],
        channel_values=channels,
        channel_versions=dict.fromkeys(channels, version),
        versions_seen={},
        updated_channels=None,
    )


def _revived(value: Any) -> Any:
    """Return a value in which the JSON of messages has become messages again."""
    if isinstance(value, list):
        return [_revived(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") in _MESSAGES and "content" in value and "additional_kwargs" in value:
        return messages_from_dict([{"type": value["type"], "data": value}])[0]
    return {key: _revived(each) for key, each in value.items()}


def _writes(task: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield what a task that has not finished has written: its interrupts, or its error."""
    if interrupts := task.get("interrupts"):
        found = [Interrupt(value=each["value"], id=each["id"]) for each in interrupts]
        yield task["id"], INTERRUPT, tuple(found)
    if error := task.get("error"):
        yield task["id"], ERROR, error
