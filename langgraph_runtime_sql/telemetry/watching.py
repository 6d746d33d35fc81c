"""Watching: count the tokens of a run's models, and make spans of its nodes, tools and models.

langchain calls the watcher of the context. Without traces it ignores all but the ends of models.
"""

from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook

from langgraph_runtime_sql.telemetry.tracing import AttemptSpans

_KINDS = {"input_tokens": "input", "output_tokens": "output"}


class Watcher(BaseCallbackHandler):
    """The watcher of one attempt at a run.

    Args:
        spans: The spans of the attempt, if it is traced.

    Attributes:
        tokens: The `input` and `output` tokens so far.
    """

    # Called in place; otherwise each token would go through a thread.
    run_inline = True
    ignore_retriever = ignore_custom_event = ignore_retry = True

    def __init__(self, spans: AttemptSpans | None) -> None:
        self.tokens = {"input": 0, "output": 0}
        self._spans = spans

    @property
    def ignore_chain(self) -> bool:
        return self._spans is None

    @property
    def ignore_agent(self) -> bool:
        return self._spans is None

    @property
    def ignore_chat_model(self) -> bool:
        return self._spans is None

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Count the tokens that a model reports."""
        usage = _usage(response)
        for name, kind in _KINDS.items():
            self.tokens[kind] += int(usage.get(name) or 0)
        if self._spans is not None:
            self._spans.model_ended(run_id, usage, response)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End the span of a model."""
        if self._spans is not None:
            self._spans.failed(run_id, error)

    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Begin the span of a node."""
        if self._spans is not None:
            self._spans.chain(run_id, parent_run_id, more.get("name"), metadata or {})

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """End the span of a node."""
        if self._spans is not None:
            self._spans.succeeded(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End the span of a node."""
        if self._spans is not None:
            self._spans.failed(run_id, error)

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Begin the span of a model."""
        if self._spans is not None:
            params = more.get("invocation_params") or {}
            self._spans.model(run_id, parent_run_id, params, metadata or {}, messages)

    def on_llm_start(
        self,
        serialized: Any,
        prompts: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Begin the span of a model that completes text."""
        if self._spans is not None:
            params = more.get("invocation_params") or {}
            self._spans.model(run_id, parent_run_id, params, metadata or {}, prompts)

    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **more: Any,
    ) -> None:
        """Begin the span of a tool."""
        if self._spans is not None:
            name = (serialized or {}).get("name") or more.get("name") or "tool"
            call_id = more.get("tool_call_id")
            self._spans.tool(run_id, parent_run_id, str(name), call_id, input_str)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """End the span of a tool."""
        if self._spans is not None:
            self._spans.succeeded(run_id, output)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End the span of a tool."""
        if self._spans is not None:
            self._spans.failed(run_id, error)


def _usage(response: LLMResult) -> dict[str, Any]:
    """Return what a model reports of its tokens."""
    for generations in response.generations:
        for each in generations:
            message = getattr(each, "message", None)
            if found := getattr(message, "usage_metadata", None):
                return dict(found)
    return {}


watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
register_configure_hook(watcher, inheritable=True)
