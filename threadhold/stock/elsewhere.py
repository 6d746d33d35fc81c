"""Elsewhere: parts of stock packages that other modules of Threadhold change, or use by their names."""

from collections.abc import Mapping
from typing import Any

from threadhold.stock import endpoints
from threadhold.stock.replacement import ATTRIBUTE, Replacement

_STARLETTE: dict[str, Any] = {"package": "starlette", "versions": ("1.10.0",)}
_LANGGRAPH: dict[str, Any] = {"package": "langgraph", "versions": ("1.2.22", "1.2.24")}
_SDK: dict[str, Any] = {"package": "langgraph-sdk", "versions": ("0.4.14",)}
_EVENTS = "langgraph_api.event_streaming"

Rows = tuple[Replacement, ...]


def _parts(
    module: str, by: str | tuple[str, ...], why: str, parts: Mapping[str, str], **more: Any
) -> Rows:
    """Return the rows of parts with the same reason: names, and what is expected of each."""
    users = (by,) if isinstance(by, str) else by
    return tuple(
        Replacement(module, name, why, expected, by=users, **more)
        for name, expected in parts.items()
    )


AUTH = (
    *_parts(
        "langgraph_api.auth.custom",
        "threadhold.host_objects",
        "The host's own function authenticates, and all other handlers are those of the project.",
        {"_load_auth_obj": "(path)"},
    ),
    *_parts(
        "langgraph_sdk",
        "threadhold.host_objects",
        "The host's own function takes the place of the project's.",
        {"Auth._authenticate_handler": "member_descriptor"},
        **_SDK,
    ),
)
"""What `given` uses while `langgraph_api.server` is imported."""

CHANGED = (
    *_parts(
        "langgraph_api.server",
        "threadhold.http.authentication",
        "The stock metrics are open, and show one of several processes.",
        {"app.router.routes[meta_metrics]": "(request)"},
        unless="disable_meta",
    ),
    *_parts(
        "langgraph_api.server",
        "threadhold.http.openapi",
        "The stock description lacks the mount's prefix and the routes of the host. The stock page "
        "loads scripts from another host.",
        {
            "app.router.routes[openapi]": "(request)",
            "app.router.routes[docs]": "(request)",
        },
        unless="disable_meta",
    ),
    *_parts(
        "langgraph_api.server",
        ("threadhold.http.host_routes", "threadhold.http.audit", "threadhold.http.openapi"),
        "The host's routes, and that of the audit log, come before the stock ones.",
        {"app.router.routes": "list"},
    ),
    *_parts(
        "langgraph_api.server",
        "threadhold.http.middleware",
        "Limits, refusals and the audit log surround all routes, in an order of their own.",
        {"app.user_middleware": "list"},
    ),
    *_parts(
        "langgraph_api.middleware.request_id",
        "threadhold.http.middleware",
        "Left out, because `RequestContext` gives and notes the id of a request.",
        {"RequestIdMiddleware": "(app, mount_prefix='')"},
    ),
    *_parts(
        "langgraph_api.operator_routes",
        "threadhold.http.middleware",
        "Left out, because it cancels all runs, ahead of the host's authentication and audit log, for whoever "
        "has a token of LangSmith.",
        {"OperatorRoutesMiddleware": "(app, mount_prefix=None)"},
        releases=">=0.18.0.dev0",
    ),
    *_parts(
        "langgraph_api.server",
        "threadhold.http.error_handlers",
        "Errors of the database and of limits have their own answers.",
        {"app.exception_handlers": "dict"},
    ),
    *_parts(
        "starlette.middleware",
        "threadhold.http.middleware",
        "The stock switch for private networks adds a header, but Starlette refuses the preflight.",
        {"Middleware.cls": ATTRIBUTE, "Middleware.kwargs": ATTRIBUTE},
        **_STARLETTE,
    ),
    *_parts(
        "starlette.middleware.cors",
        ("threadhold.http.middleware", "threadhold.http.origins"),
        "Its arguments also tell which origins are refused before the routes.",
        {
            "CORSMiddleware": "(app, allow_origins=..., allow_methods=..., allow_headers=..., "
            "allow_credentials=False, allow_origin_regex=None, allow_private_network=False, "
            "expose_headers=..., max_age=600)"
        },
        **_STARLETTE,
    ),
    *_parts(
        "langgraph_api.auth.middleware",
        "threadhold.http.authentication",
        "The stock refusal loses the headers of the project's handler, such as `WWW-Authenticate`.",
        {"on_error": "(conn, exc)"},
    ),
    *_parts(
        "langgraph_api.auth.middleware",
        "threadhold.http.authentication",
        "All layers ask one backend, which asks the project once for each request.",
        {
            "ConditionalAuthenticationMiddleware": "(app, backend, on_error=None)",
            "ConditionalAuthenticationMiddleware.app": ATTRIBUTE,
            "ConditionalAuthenticationMiddleware.backend": ATTRIBUTE,
            "ConditionalAuthenticationMiddleware.on_error": ATTRIBUTE,
        },
    ),
    *_parts(
        "langgraph_api.route",
        "threadhold.http.middleware",
        "Limits and keys surround each route of the API, inside of its authentication, and no route "
        "of the project.",
        {
            "ApiRoute": "(path, endpoint, *, methods=None, name=None, include_in_schema=True, "
            "middleware=None)",
            "ApiRoute.app": ATTRIBUTE,
        },
    ),
    *_parts(
        "starlette.routing",
        "threadhold.http.middleware",
        "A WebSocket counts as a request and as a stream.",
        {"WebSocketRoute.app": ATTRIBUTE},
        **_STARLETTE,
    ),
    *_parts(
        "starlette.routing",
        ("threadhold.http.authentication", "threadhold.http.audit"),
        "Layers of authentication are found by it, and put around the metrics and the audit log.",
        {"Route.app": ATTRIBUTE, "Mount.app": ATTRIBUTE},
        **_STARLETTE,
    ),
    *_parts(
        "langgraph_api.route",
        (
            "threadhold.api_calls",
            "threadhold.stock.event_routes",
            "threadhold.stock.request_checks",
        ),
        "The stock class reads a body once, and keeps it here. So a body is set, or changed.",
        {
            "ApiRequest.body": "(self)",
            "ApiRequest.json": "(self, schema=None)",
            "ApiRequest._body": ATTRIBUTE,
            "ApiRequest._json": ATTRIBUTE,
        },
    ),
    *_parts(
        "langgraph_api.utils",
        (
            "threadhold.users",
            "threadhold.http.request_context",
            "langgraph_runtime_sql.ops.crons.firing",
        ),
        "The API's functions act as the user in it, also for routes of the host and for crons.",
        {"AuthContext": "ContextVar"},
    ),
    *_parts(
        f"{_EVENTS}.service",
        "threadhold.stock.event_streaming",
        "A connection begins at a cursor, and begins again at that of a later subscription.",
        {
            "ThreadRunManager._current_run_id": ATTRIBUTE,
            "ThreadRunManager._pending_subscriptions": ATTRIBUTE,
            "ThreadRunManager._session": ATTRIBUTE,
            "ThreadRunManager._thread_source_task": ATTRIBUTE,
            "ThreadRunManager._thread_stream_done": ATTRIBUTE,
        },
    ),
    *_parts(
        f"{_EVENTS}.session",
        "threadhold.stock.event_session",
        "Each event gets the sequence number of its place in the log, and old ones are kept back.",
        {
            "EventStreamingSession._buffer": ATTRIBUTE,
            "EventStreamingSession._create_event": "(self, method, namespace, data, *, node=None, "
            "timestamp=None, event_id=None)",
            "EventStreamingSession._next_seq": ATTRIBUTE,
            "EventStreamingSession._push_event": "(self, event)",
        },
    ),
    *_parts(
        "langgraph_api.asyncio",
        "threadhold.stock.stream_codec",
        "The wait for an event of a stream ends with the event of the stop, without a task.",
        {"ValueEvent._value": ATTRIBUTE, "ValueEvent._waiters": ATTRIBUTE},
    ),
    *_parts(
        "langgraph_api.http",
        "threadhold.stock.webhooks",
        "The client of webhooks gets a hook that refuses redirects.",
        {"JsonHttpClient.client": ATTRIBUTE},
    ),
    *_parts(
        "langgraph_api.webhook",
        "threadhold.stock.webhooks",
        "The policy of webhooks gets more networks.",
        {"_WebhookConfig.base_ssrf_policy": ATTRIBUTE},
    ),
    *_parts(
        "langgraph_api.lc_security.policy",
        "threadhold.stock.webhooks",
        "The networks that the policy refuses.",
        {"SSRFPolicy.additional_blocked_cidrs": "tuple"},
    ),
    *_parts(
        "langgraph_api.api.ui",
        "langgraph_runtime_sql.ui_bundler",
        "The stock route keeps the first list of UI components. A new build must be seen.",
        {"_UI_SCHEMAS_CACHE": "NoneType"},
    ),
    *_parts(
        "langgraph_api.middleware.ensure_store",
        "threadhold.stock.starts",
        "The stock middleware keeps the store of the first start of a process.",
        {"_CONFIG": "NoneType"},
    ),
)
"""What other modules change."""

USED = (
    *AUTH,
    *(
        row
        for module, names in endpoints.MODULES.items()
        for row in _parts(
            module,
            ("threadhold.operations", "threadhold.stock.endpoints"),
            "A route of the host calls the function behind the API's own route.",
            dict.fromkeys(names, "(request)"),
        )
    ),
    *_parts(
        "langgraph_api.sse",
        "threadhold.operations",
        "A host's own stream has heartbeats and ends as the API's streams do.",
        {"EventSourceResponse": "(content, status_code=200, headers=None)"},
    ),
    *_parts(
        "langgraph_api.route",
        "threadhold.stock.event_routes",
        "It makes the app of a route.",
        {"api_request_response": "(func)"},
    ),
    *_parts(
        f"{_EVENTS}.service",
        "threadhold.stock.event_streaming",
        "What a connection sends goes through the stock session.",
        {
            "ThreadRunManager._ensure_run_session_for_id": "(self, run_id)",
            "ThreadRunManager._error": "(cmd_id, code, message)",
            "ThreadRunManager._make_send": "(self)",
            "ThreadRunManager._seq": ATTRIBUTE,
            "ThreadRunManager._thread_id": ATTRIBUTE,
            "ThreadRunManager.close": "(self)",
        },
    ),
    *_parts(
        f"{_EVENTS}.session",
        ("threadhold.stock.event_session", "threadhold.stock.event_streaming"),
        "Events of the log are normalized by the stock session.",
        {
            "EventStreamingSession._emit_input_requested_events": "(self, namespace, requests)",
            "EventStreamingSession._handle_normalized_event": "(self, method_from_name, "
            "namespace_from_name, event)",
            "EventStreamingSession._max_buffer_size": ATTRIBUTE,
            "EventStreamingSession._root_graph_name": ATTRIBUTE,
            "EventStreamingSession._run_id": ATTRIBUTE,
            "EventStreamingSession.complete": "(self)",
            "EventStreamingSession.ingest_source_event": "(self, event)",
            "EventStreamingSession.lookup_pending_interrupt": "(self, interrupt_id)",
            "EventStreamingSession.subscriptions": ATTRIBUTE,
        },
    ),
    *_parts(
        "langgraph.stream._types",
        "threadhold.stock.stream_modes",
        "It is the base of the transformer that leaves of each snapshot its ids.",
        {"StreamTransformer": "(scope=...)"},
        **_LANGGRAPH,
    ),
    *_parts(
        "langgraph_api._checkpointer",
        ("langgraph_runtime_sql.lifespan", "langgraph_runtime_sql.ops.threads.graph"),
        "The runtime starts and ends a checkpointer of the project, and reads states with it.",
        {
            "exit_checkpointer": "()",
            "get_checkpointer": "(*, conn=None, unpack_hook=None, use_direct_connection=False)",
            "start_checkpointer": "()",
        },
    ),
    *_parts(
        "langgraph_api.logging",
        "threadhold.serving.run_lines",
        "Log lines name the run that they are about.",
        {"worker_config": "ContextVar"},
    ),
    *_parts(
        "langgraph_api.utils.errors",
        "threadhold.start_errors",
        "A start that fails says which graph cannot be loaded.",
        {"GraphLoadError.spec": ATTRIBUTE},
    ),
    *_parts(
        "starlette.routing",
        "threadhold.platform",
        "The start finds the mount of the platform behind the host's middleware.",
        {"Mount._base_app": ATTRIBUTE},
        **_STARLETTE,
    ),
)
"""What other modules use by a name that is internal, or that no import checks."""
