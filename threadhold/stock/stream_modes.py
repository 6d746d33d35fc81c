"""Stream modes: what each graph streams in protocol 2, beside what langgraph does by itself.

The native streams of langgraph have the events of a mode only if some transformer asks for it, so
`langgraph_api` has channels in which it sends nothing. Here each graph asks for two more:

- `checkpoints`: React's hook forks a thread at the parent checkpoint of a message. It reads this
  from the event in front of a `values` event. Of each snapshot, only its ids are left.
- `custom`: what a node writes with `get_stream_writer()`.
"""

from collections.abc import Callable
from typing import Any

Factory = Callable[[], list[Any]]


class Transformers(dict[str, Factory]):
    """The factories of the graphs' transformers by graph id, each with ours beside its own ones."""

    def get(self, graph_id: str, default: Any = None) -> Any:
        own = super().get(graph_id)
        transformer = _transformer()

        def factory() -> list[Any]:
            # The last one, so that those of the graph see whole snapshots.
            return [*(own() if own is not None else ()), transformer]

        return factory


def _transformer() -> Any:
    from langgraph.stream._types import StreamTransformer

    class Asked(StreamTransformer):
        """Asks for the modes, and replaces snapshots by their ids."""

        required_stream_modes = ("checkpoints", "custom")

        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: Any) -> bool:
            if event["method"] == "checkpoints":
                params = event["params"]
                params["data"] = ids(params["data"])
            return True

    return Asked


def ids(snapshot: Any) -> Any:
    """Return the id, the parent's id, the step and the source of a snapshot."""
    if not isinstance(snapshot, dict) or "config" not in snapshot:
        return snapshot
    found = {"id": _id(snapshot["config"])}
    if parent := _id(snapshot.get("parent_config")):
        found["parent_id"] = parent
    metadata = snapshot.get("metadata") or {}
    return found | {key: metadata[key] for key in ("step", "source") if key in metadata}


def _id(config: Any) -> Any:
    return ((config or {}).get("configurable") or {}).get("checkpoint_id")
