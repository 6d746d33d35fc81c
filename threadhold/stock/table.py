"""The table: each part of a stock package that Threadhold replaces, in the order of installation."""

from langgraph_runtime_sql.gate import writes
from threadhold.stock import (
    agent_cards,
    drained_runs,
    elsewhere,
    event_routes,
    event_session,
    event_streaming,
    graph_schemas,
    mcp_tools,
    message_json,
    request_checks,
    stream_codec,
    stream_ends,
    stream_modes,
    webhooks,
)
from threadhold.stock.replacement import Replacement, instead

_BEFORE_17, _SINCE_17 = "<0.17.0rc0", ">=0.17.0rc0"
_BEFORE_18, _SINCE_18 = "<0.18.0.dev0", ">=0.18.0.dev0"
_MANAGER = "ThreadRunManager"
_SERVICE = "langgraph_api.event_streaming.service"

BEFORE_IMPORT = (
    Replacement(
        "langgraph.checkpoint.serde._msgpack",
        "STRICT_MSGPACK_ENABLED",
        "langgraph reads the variable at import, which may be before the platform sets it. Then a "
        "checkpoint could name any type.",
        "bool",
        replace=instead(True),
        by=("threadhold.stock.table",),
        versions=("4.3.2",),
        package="langgraph-checkpoint",
    ),
    Replacement(
        "langgraph._internal._serde",
        "STRICT_MSGPACK_ENABLED",
        "The copy of it that compiled graphs read.",
        "bool",
        replace=instead(True),
        by=("threadhold.stock.table",),
        versions=("1.2.22", "1.2.24"),
        package="langgraph",
    ),
    Replacement(
        "langgraph_api.config",
        "RESUME_DRAINED_RUNS",
        "`langgraph_api` honours FF_RESUME_DRAINED_RUNS only on the closed runtime.",
        "bool",
        replace=drained_runs.resumed,
        releases=_SINCE_17,
    ),
)
"""What must be replaced before `langgraph_api` imports code of the project."""

REPLACED = (
    Replacement(
        _SERVICE,
        "EventStreamingSession",
        "A sequence number is a place in the event log, and a new attempt takes back what its "
        "predecessor streamed.",
        "(*, run_id, thread_id=None, initial_run, get_run, get_thread_state=None, send, source=None, "
        "max_buffer_size=None)",
        replace=event_session.session_class,
    ),
    *(
        Replacement(
            _SERVICE,
            f"{_MANAGER}.start_thread_stream",
            "A stream begins at a cursor, or at what is not over. The stock one sends everything again.",
            signature,
            replace=instead(event_streaming.start),
            releases=releases,
        )
        for releases, signature in {
            _BEFORE_17: "(self)",
            # The route checks the access, and passes on what it has found.
            _SINCE_17: "(self, *, auth_filters=None)",
        }.items()
    ),
    Replacement(
        _SERVICE,
        f"{_MANAGER}.wait_for_thread_stream_end",
        "The stream of a WebSocket begins with its first subscription, which may have a cursor.",
        "(self)",
        replace=instead(event_streaming.wait_for_end),
    ),
    Replacement(
        _SERVICE,
        f"{_MANAGER}._meta",
        "Answers to commands say what the stream contained before the command.",
        "(self)",
        replace=instead(event_streaming.meta),
    ),
    Replacement(
        _SERVICE,
        f"{_MANAGER}.handle_command",
        "Commands have cursors, and a hook's refusal keeps its error and its hint.",
        "(self, command)",
        replace=event_streaming.handle_command,
    ),
    Replacement(
        _SERVICE,
        f"{_MANAGER}._create_or_resume_run",
        "The stock caller turns a hook's refusal into a text.",
        "(self, assistant_id, params)",
        replace=event_streaming.create_or_resume_run,
    ),
    Replacement(
        _SERVICE,
        f"{_MANAGER}._collect_persisted_interrupt_ids",
        "A thread that does not exist yet would be logged as a failure.",
        "(self)",
        replace=event_streaming.collect_interrupts,
    ),
    Replacement(
        _SERVICE,
        f"{_MANAGER}._collect_settled_interrupt_ids",
        "A command waits for a question only while a run is executed.",
        "(self)",
        replace=lambda stock: event_streaming.settled_interrupts,
    ),
    Replacement(
        "langgraph_api.api.event_streaming",
        "event_streaming_routes[_thread_events]",
        "The route reads a cursor, and refuses an invalid one.",
        "(request)",
        replace=event_routes.events,
    ),
    Replacement(
        "langgraph_api.api.event_streaming",
        "event_streaming_routes[_thread_websocket]",
        "The WebSocket reads a cursor, and says where to continue when the server stops.",
        "(websocket)",
        replace=event_routes.websocket,
    ),
    Replacement(
        "langgraph_api.graph",
        "GRAPH_STREAM_TRANSFORMERS",
        "React's hook forks a thread at the checkpoint of a message, which no stock stream names. "
        "And no stock stream has custom events, though it has the channel.",
        "dict",
        replace=stream_modes.Transformers,
    ),
    Replacement(
        "langgraph_api.route",
        "ApiRequest",
        "Bodies that pass the stock schemas and break the stock handlers get a 4xx instead of a 500.",
        "(scope, receive=..., send=...)",
        replace=request_checks.checked,
    ),
    Replacement(
        "langgraph_api.api.store",
        "handle_event",
        "The store's routes ask the authorization handlers themselves. All others leave it to the "
        "gate, which also checks limits and keeps the audit log.",
        "(action, value)",
        replace=instead(writes.admit_item),
    ),
    Replacement(
        "langgraph_api.serde",
        "default",
        "The stock encoder copies each message, which takes most of the time of an answer.",
        "(obj)",
        replace=message_json.default,
    ),
    Replacement(
        "langgraph_api.stream",
        "run_in_executor",
        "The stock stream encodes each event in a thread, which gains nothing: the encoder holds the "
        "interpreter's lock.",
        "(executor_or_config, func, *args, **kwargs)",
        replace=stream_codec.encoding_here,
    ),
    Replacement(
        "langgraph_api.stream",
        "wait_if_not_done",
        "The stock stream starts two tasks to wait for each event.",
        "(coro, done)",
        replace=instead(stream_codec.wait_unless_stopped),
    ),
    Replacement(
        "langgraph_api.sse",
        "EventSourceResponse.__call__",
        "A stream counts in the metrics, and a stream that the server cuts off says where to continue.",
        "(self, scope, receive, send)",
        replace=stream_ends.call,
    ),
    Replacement(
        "langgraph_api.sse",
        "EventSourceResponse._listen_for_exit_signal",
        "sse-starlette ends all streams half a second after a SIGTERM. Here they end with their run.",
        "()",
        replace=stream_ends.listen,
    ),
    Replacement(
        "langgraph_api.api.assistants",
        "get_graph",
        "The stock routes make a graph for each request of its schemas.",
        "(graph_id, config, *, checkpointer=None, store, access_context, run_id=None, context=None, "
        "use_langgraph_runtime=False)",
        replace=graph_schemas.get_graph,
    ),
    Replacement(
        "langgraph_api.api.assistants",
        "_graph_schemas",
        "Schemas take about 50 ms of the event loop. Here they are built once, in a thread.",
        "(graph)",
        replace=graph_schemas.graph_schemas,
    ),
    Replacement(
        "langgraph_api.api.assistants",
        "assistants_routes[get_assistant_schemas]",
        "Only a request of this route needs no graph but its schemas.",
        "(request)",
        replace=graph_schemas.route,
    ),
    *(
        Replacement(
            module,
            "_client",
            "Assistants of the same name hide each other as tools, and MCP's list of tools asks for "
            "all schemas at once.",
            "()",
            replace=mcp_tools.client,
            releases=releases,
        )
        for releases, module in {
            _BEFORE_18: "langgraph_api.api.mcp._handlers",
            # On the official SDK.
            _SINCE_18: "langgraph_api.api.mcp._tools",
        }.items()
    ),
    Replacement(
        "langgraph_api.webhook",
        "_get_webhook_config",
        "The stock table of refused networks lacks some that lead into private ones.",
        "()",
        replace=webhooks.extended,
    ),
    Replacement(
        "langgraph_api.webhook",
        "ensure_webhook_http_client",
        "The stock client follows a redirect from https to http.",
        "()",
        replace=webhooks.strict,
    ),
    Replacement(
        "langgraph_api.api.a2a",
        "generate_agent_card",
        "The stock card names the host that the client has written into its request.",
        "(request, assistant_id)",
        replace=agent_cards.relative,
    ),
)
"""What is replaced after the import of `langgraph_api.server`."""

TABLE = (*REPLACED, *elsewhere.CHANGED, *elsewhere.USED)
"""What is checked after the import of `langgraph_api.server`."""
