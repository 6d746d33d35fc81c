"""Environment: compute the variables that configure `langgraph_api`, from a `ConfigFile`.

`langgraph_api` reads them once, at import; `platform.py` sets them. Some of its defaults suit
only a development server (any origin, pickle, private webhooks). Ours are closed.
"""

import json
from collections.abc import Mapping
from typing import Any

from langgraph_runtime_sql.options import NO_REDIS
from threadhold.config_file import ConfigError, ConfigFile
from threadhold.options import PlatformOptions

STUDIO_ORIGINS = ("https://smith.langchain.com", "https://eu.smith.langchain.com")

LOCAL = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"
"""Origins of pages on this machine, which `dev` allows."""

# Headers that the published clients read; browsers hide them unless CORS exposes them.
EXPOSED_HEADERS = [
    "content-location",
    "location",
    "x-pagination-next",
    "x-pagination-total",
]

Environment = dict[str, str | None]
"""Variable to value; None means unset."""


def environment(config: ConfigFile, options: PlatformOptions) -> Environment:
    """Return every variable that the platform sets.

    Raises:
        ConfigError: a section has a value that is unsafe or not supported.
    """
    sections = config.sections
    owned: Environment = {
        "LANGGRAPH_RUNTIME_EDITION": "sql",
        "DATABASE_URI": options.database_url,
        # langgraph_api requires it, but does not use it.
        "REDIS_URI": options.redis_url or NO_REDIS,
        "LANGSERVE_GRAPHS": json.dumps(config.graphs),
        "LANGGRAPH_AUTH": _auth(sections["auth"]),
        "LANGGRAPH_HTTP": json.dumps(_http(config, options)),
        "LANGGRAPH_STORE": _json(sections["store"]),
        "LANGGRAPH_CHECKPOINTER": json.dumps(_checkpointer(config)),
        "LANGGRAPH_WEBHOOKS": json.dumps(_webhooks(config, options.allow_private_webhooks)),
        "LANGGRAPH_UI": _json(sections["ui"]),
        "LANGGRAPH_UI_CONFIG": _json(sections["ui_config"]),
        "LANGGRAPH_UI_BUNDLER": "true" if sections["ui"] else None,
        "HTTP_MAX_REQUEST_BODY_BYTES": str(options.max_body_bytes),
        "LANGGRAPH_STRICT_MSGPACK": "true",
        # Histograms of higher tiers take a tenth of a run's time and never reach `/metrics`.
        "METRIC_MAX_EMITTING_TIER": "1",
        # `http.middleware` lets Studio in, by the current option of Starlette.
        "ALLOW_PRIVATE_NETWORK": None,
    }
    if options.public_url is not None:
        owned["LANGGRAPH_API_URL"] = options.public_url
    if options.n_jobs is not None:
        owned["N_JOBS_PER_WORKER"] = str(options.n_jobs)
    return owned | dict.fromkeys(_NEVER) | {"MIGRATIONS_PATH": "langgraph_runtime_sql/migrations"}


# A shell or container image may set these. The first bypasses authentication, the others select
# parts of other editions.
_NEVER = (
    "LANGSMITH_LANGGRAPH_API_VARIANT",
    "REDIS_URI_CUSTOM",
    "CORS_CONFIG",
    "MOUNT_PREFIX",
    "DISPATCH_MODE",
    "LANGGRAPH_ENCRYPTION",
    "LANGGRAPH_STORE_BACKEND",
    "LS_DEFAULT_CHECKPOINTER_BACKEND",
)


def _json(section: dict[str, Any]) -> str | None:
    return json.dumps(section) if section else None


def _auth(auth: dict[str, Any]) -> str | None:
    """Disable Studio's own authentication, which bypasses the project's."""
    return json.dumps({**auth, "disable_studio_auth": True}) if auth else None


def _http(config: ConfigFile, options: PlatformOptions) -> dict[str, Any]:
    # The platform itself serves the prefix: `langgraph_api` would mount another app below it.
    http = {key: value for key, value in config.sections["http"].items() if key != "mount_prefix"}
    cors = http.get("cors") if options.cors is None else options.cors
    given = _object(config, "http.cors", cors)
    http["cors"] = _cors(config, given, STUDIO_ORIGINS if options.studio else ())
    # Without a `ui` section these routes serve nothing, and they need no authentication.
    http.setdefault("disable_ui", not config.sections["ui"])
    return http


def _cors(config: ConfigFile, cors: Mapping[str, Any], extra: tuple[str, ...]) -> dict[str, Any]:
    for name in ("allow_origins", "allow_methods", "allow_headers", "expose_headers"):
        found = cors.get(name, ())
        if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
            raise ConfigError(f"{config.source}: http.cors.{name}: must be a list of strings")
    origins = [*cors.get("allow_origins", ()), *extra]
    if extra:
        # Pages under development are served at changing ports of this machine.
        given = cors.get("allow_origin_regex")
        cors = {**cors, "allow_origin_regex": f"(?:{given})|{LOCAL}" if given else LOCAL}
    if "*" in origins and cors.get("allow_credentials"):
        raise ConfigError(
            f"{config.source}: http.cors: any origin ('*') with credentials would let every "
            "website act for a logged-in user; name the origins"
        )
    return {
        "allow_methods": ["*"],
        "allow_headers": ["*"],
        "expose_headers": EXPOSED_HEADERS,
        **cors,
        "allow_origins": origins,
    }


def _checkpointer(config: ConfigFile) -> dict[str, Any]:
    checkpointer = dict(config.sections["checkpointer"])
    if checkpointer.get("backend") not in (None, "default", "custom"):
        raise ConfigError(
            f"{config.source}: checkpointer.backend: {checkpointer['backend']!r} is not supported"
        )
    serde = _object(config, "checkpointer.serde", checkpointer.get("serde"))
    if serde.get("pickle_fallback"):
        raise ConfigError(
            f"{config.source}: checkpointer.serde.pickle_fallback: not supported, because a "
            "writer of the database could then run code in this process; remove it"
        )
    return {**checkpointer, "serde": {**serde, "pickle_fallback": False}}


def _webhooks(config: ConfigFile, allow_private: bool) -> dict[str, Any]:
    """Allow webhooks only by https to public addresses, unless `webhooks.url` says otherwise."""
    webhooks = config.sections["webhooks"]
    closed = {
        "require_https": not allow_private,
        "disable_private_ips": not allow_private,
        # Even with `allow_private`: a loopback webhook skips authentication (GHSA-2c9q-c2q9-qgqv).
        "disable_loopback": True,
    }
    url = _object(config, "webhooks.url", webhooks.get("url"))
    return {**webhooks, "url": {**closed, **url}}


def _object(config: ConfigFile, key: str, value: Any) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(f"{config.source}: {key}: must be an object")
    return dict(value or {})
