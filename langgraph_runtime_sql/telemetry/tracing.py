"""Tracing: OpenTelemetry spans of requests, runs, nodes, tools and models.

They are off unless an OTLP endpoint is set, and need the extra `otel`. The names follow the semantic
conventions for generative AI. What users and models say is left out unless
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `true`.

A run keeps the context of the request that created it, so all its attempts are one trace, in
whatever process. A thread of OpenTelemetry sends the spans.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from langgraph_runtime_sql.errors import RuntimeSqlError

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
# Where a stored run keeps the context of its request.
KEY = "__traceparent"
MAX_CONTENT = 20_000


class TracingNotInstalled(RuntimeSqlError, ImportError):
    """An OTLP endpoint is set, but OpenTelemetry is not installed."""


class _Tracing:
    """The tracer of the process; None while traces are off."""

    def __init__(self) -> None:
        self.tracer: Any = None
        self.provider: Any = None
        self.shows_content = False


_state = _Tracing()


def is_wanted() -> bool:
    """Return whether the environment names an OTLP endpoint for traces."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not disabled and any(os.environ.get(name) for name in ENDPOINTS)


def is_on() -> bool:
    """Return whether spans are made."""
    return _state.tracer is not None


def start() -> None:
    """Begin to make spans, if an endpoint is set. Repeatable.

    Raises:
        TracingNotInstalled: the extra `otel` is not installed.
    """
    if _state.tracer is not None or not is_wanted():
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise TracingNotInstalled(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, so traces need OpenTelemetry: "
            "pip install 'threadhold[otel]'"
        ) from error
    name = os.environ.get("OTEL_SERVICE_NAME", "threadhold")
    # Not the global provider, which belongs to the host.
    _state.provider = TracerProvider(resource=Resource.create({"service.name": name}))
    _state.provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _state.tracer = _state.provider.get_tracer("threadhold")
    _state.shows_content = os.environ.get(CONTENT, "").lower() == "true"


async def stop() -> None:
    """Send the last spans. Repeatable."""
    provider, _state.provider, _state.tracer = _state.provider, None, None
    if provider is not None:
        await asyncio.to_thread(provider.shutdown)


def request_span(name: str, headers: Mapping[str, str], attributes: Mapping[str, Any]) -> Any:
    """Begin the span of a request, below the one that its headers name."""
    from opentelemetry.trace import SpanKind

    return _state.tracer.start_span(
        name, context=_context(headers), kind=SpanKind.SERVER, attributes=dict(attributes)
    )


def current_carrier() -> dict[str, str] | None:
    """Return the context of the current request, to be stored with a run; None if traces are off."""
    if _state.tracer is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier or None


def _context(carrier: Mapping[str, str]) -> Any:
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract(carrier, context=Context())


class AttemptSpans:
    """The spans of one attempt at a run.

    Args:
        carrier: The context that the run keeps; without it, the attempts are apart.
        run: The claimed run.
        attempt: The number of the attempt.
        graph: The graph's id.
    """

    def __init__(
        self, carrier: Mapping[str, str] | None, run: Mapping[str, Any], attempt: int, graph: str
    ) -> None:
        context = _context(carrier or {})
        common = {
            "gen_ai.conversation.id": str(run["thread_id"]),
            "threadhold.run.id": str(run["run_id"]),
            "threadhold.run.attempt": attempt,
        }
        due = min(run["created_at"], datetime.now(UTC))
        waited = _state.tracer.start_span(
            "queue wait", context=context, start_time=_nanoseconds(due), attributes=common
        )
        waited.end()
        self._graph = graph
        self._root = _state.tracer.start_span(
            f"invoke_agent {graph}",
            context=context,
            attributes={
                **common,
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": graph,
                "gen_ai.agent.id": str(run["assistant_id"]),
            },
        )
        # Of each call that langchain reports: its own span, or the one that it belongs to.
        self._spans: dict[UUID, Any] = {}
        self._open: set[UUID] = set()

    def end(self, status: str, error: BaseException | None, tokens: Mapping[str, int]) -> None:
        """End the attempt, and whatever it has left open."""
        for run_id in list(self._open):
            self._end(run_id)
        self._root.set_attribute("threadhold.run.status", str(status))
        for kind, number in tokens.items():
            self._root.set_attribute(f"gen_ai.usage.{kind}_tokens", number)
        if error is not None:
            _mark(self._root, error)
        self._root.end()

    def chain(
        self, run_id: UUID, parent: UUID | None, name: str | None, metadata: Mapping[str, Any]
    ) -> None:
        """Begin the span of a node; other parts of a graph have none of their own."""
        node = metadata.get("langgraph_node")
        if node is None or name != node:
            self._spans[run_id] = self._parent(parent)
            return
        attributes = {
            "threadhold.node": str(node),
            "threadhold.step": int(metadata.get("langgraph_step") or 0),
            "gen_ai.agent.name": self._graph,
        }
        self._begin(run_id, parent, f"node {node}", attributes)

    def tool(
        self, run_id: UUID, parent: UUID | None, name: str, call_id: object, asked: object
    ) -> None:
        """Begin the span of a tool."""
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        if call_id is not None:
            attributes["gen_ai.tool.call.id"] = str(call_id)
        if _state.shows_content:
            attributes["gen_ai.tool.call.arguments"] = _text(asked)
        self._begin(run_id, parent, f"execute_tool {name}", attributes)

    def model(
        self,
        run_id: UUID,
        parent: UUID | None,
        params: Mapping[str, Any],
        metadata: Mapping[str, Any],
        asked: Any,
    ) -> None:
        """Begin the span of a model."""
        model = str(
            metadata.get("ls_model_name") or params.get("model") or params.get("_type") or "model"
        )
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": str(metadata.get("ls_provider") or params.get("_type") or ""),
            "gen_ai.request.model": model,
        }
        if (temperature := metadata.get("ls_temperature")) is not None:
            attributes["gen_ai.request.temperature"] = temperature
        if _state.shows_content:
            attributes["gen_ai.input.messages"] = _text(asked)
        self._begin(run_id, parent, f"chat {model}", attributes)

    def model_ended(self, run_id: UUID, usage: Mapping[str, Any], response: Any) -> None:
        """End the span of a model with its tokens."""
        span = self._spans.get(run_id)
        if span is None or run_id not in self._open:
            return
        for kind in ("input", "output"):
            if (number := usage.get(f"{kind}_tokens")) is not None:
                span.set_attribute(f"gen_ai.usage.{kind}_tokens", int(number))
        generation = next((each for found in response.generations for each in found), None)
        message = getattr(generation, "message", None)
        known = getattr(message, "response_metadata", None) or {}
        if model := known.get("model_name"):
            span.set_attribute("gen_ai.response.model", str(model))
        if reason := known.get("finish_reason"):
            span.set_attribute("gen_ai.response.finish_reasons", [str(reason)])
        if _state.shows_content and generation is not None:
            span.set_attribute("gen_ai.output.messages", _text(message or generation.text))
        self._end(run_id)

    def succeeded(self, run_id: UUID, output: object = None) -> None:
        """End the span of a node or a tool."""
        if _state.shows_content and output is not None and run_id in self._open:
            self._spans[run_id].set_attribute("gen_ai.tool.call.result", _text(output))
        self._end(run_id)

    def failed(self, run_id: UUID, error: BaseException) -> None:
        """End the span of a call that raised an error."""
        if run_id in self._open:
            _mark(self._spans[run_id], error)
        self._end(run_id)

    def _parent(self, parent: UUID | None) -> Any:
        return self._root if parent is None else self._spans.get(parent, self._root)

    def _begin(
        self, run_id: UUID, parent: UUID | None, name: str, attributes: dict[str, Any]
    ) -> None:
        from opentelemetry.trace import set_span_in_context

        tracer = _state.tracer
        if tracer is None:
            return
        context = set_span_in_context(self._parent(parent))
        self._spans[run_id] = tracer.start_span(name, context=context, attributes=attributes)
        self._open.add(run_id)

    def _end(self, run_id: UUID) -> None:
        span = self._spans.pop(run_id, None)
        if span is not None and run_id in self._open:
            self._open.discard(run_id)
            span.end()


def _mark(span: Any, error: BaseException) -> None:
    """Mark a span as failed, by the class of the error: its message may quote a user."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", type(error).__qualname__)
    span.set_status(Status(StatusCode.ERROR))


def _nanoseconds(date: datetime) -> int:
    return int(date.timestamp() * 1e9)


def _text(found: Any) -> str:
    """Return messages or other values as JSON, cut off at `MAX_CONTENT` characters."""
    return json.dumps(found, default=_plain)[:MAX_CONTENT]


def _plain(found: Any) -> Any:
    dump = getattr(found, "model_dump", None)
    return dump() if callable(dump) else str(found)
