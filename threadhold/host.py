"""The host app: a health route, the web app, an access log and an error boundary around it all."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from langgraph_runtime_sql import database, runtime
from langgraph_runtime_sql.errors import DatabaseOutage, DatabaseState, RuntimeSqlError
from threadhold.auth.settings import IdentitySettings
from threadhold.auth.start import AuthenticationMissing, is_named, platform_options
from threadhold.config_file import read_config
from threadhold.http import middleware, web_app
from threadhold.http.host_routes import LargeBody, PassedOn, read_json
from threadhold.http.idempotency import REFUSAL as NO_IDEMPOTENCY_KEY
from threadhold.http.idempotency import REPLAYED
from threadhold.http.layers import Layer
from threadhold.http.stream_ends import resume_event, wait_end
from threadhold.options import PlatformOptions, shared, takes
from threadhold.platform import LangGraphPlatform
from threadhold.settings import Settings

__all__ = [
    # For a host's own routes.
    "NO_IDEMPOTENCY_KEY",
    "REPLAYED",
    "AuthenticationMissing",
    "LargeBody",
    "PassedOn",
    "create_app",
    "create_platform",
    "host",
    "read_json",
    "resume_event",
    "wait_end",
]

logger = logging.getLogger(__name__)

HEALTH_SECONDS = 3.0


def create_app(settings: Settings, *, studio: bool = False) -> Starlette:
    """Make the app that `threadhold serve` runs for any project.

    Args:
        settings: The server's settings.
        studio: Let LangGraph Studio reach the server from a browser.

    Returns:
        The app; its platform is `app.state.platform`.

    Raises:
        ConfigError: the project cannot be served.
        AuthenticationMissing: outside `local_dev`, without `auth` in the project.
    """
    return host(create_platform(settings, studio=studio))


@takes(PlatformOptions)
def create_platform(settings: Settings, options: PlatformOptions) -> LangGraphPlatform:
    """Make the platform that the settings describe.

    Args:
        settings: The server's settings.
        options: Arguments of `LangGraphPlatform`, which override the settings.

    Raises:
        ConfigError: the project cannot be served.
        AuthenticationMissing: outside `local_dev`, without `auth` in the project, or without a key
            for `threadhold.auth`.
    """
    given = {name: getattr(options, name) for name in options.model_fields_set}
    project = read_config(given.get("config", settings.langgraph_json))
    if is_named(project.sections["auth"]):
        own = settings if isinstance(settings, IdentitySettings) else IdentitySettings()
        needed = platform_options(own)
        given = {**needed, **given, "env": {**needed["env"], **(given.get("env") or {})}}
    if settings.langgraph_aes_key is not None:
        env = given.get("env") or {}
        given["env"] = {**env, "LANGGRAPH_AES_KEY": settings.langgraph_aes_key}
    if settings.cors_allow_origins:
        given.setdefault("cors", {"allow_origins": list(settings.cors_allow_origins)})
    given.setdefault(
        "public_metrics", _has_public_metrics(settings, given.get("metrics_permission"))
    )
    platform = LangGraphPlatform(**{**shared(settings), **given, "config": project})
    if not settings.is_local and not project.sections["auth"]:
        raise AuthenticationMissing(
            f"APP_ENV={settings.app_env} needs authentication: {project.source} has no "
            "'auth', so every caller would have full access. Add one, or use "
            "APP_ENV=local_dev on your own machine."
        )
    return platform


def _has_public_metrics(settings: Settings, permission: str | None) -> bool:
    """Return whether everyone may read the metrics; by default only on the developer's machine."""
    if settings.public_metrics is None:
        return settings.is_local and permission is None and settings.metrics_token is None
    return settings.public_metrics


def host(
    platform: LangGraphPlatform,
    *,
    close: Callable[[], None] | None = None,
) -> Starlette:
    """Make the app that serves a platform at the mount prefix of its project.

    Args:
        platform: The platform.
        close: Called after the platform has stopped.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with platform.lifespan(app):
            tune_garbage_collector()
            yield

    # Probes ask for `/ok` at the root, wherever the API is, and the platform answers them.
    probe = [Route("/ok", platform)] if platform.config.mount_prefix else []
    app = Starlette(
        routes=[
            Route("/health", health),
            *web_app.routes(platform.config.mount_prefix, max_body_bytes=platform.max_body_bytes),
            *probe,
            Mount(platform.config.mount_prefix or "/", app=platform),
        ],
        middleware=[Middleware(Layer, middleware.around_host())],
        exception_handlers={HTTPException: refused},
        lifespan=lifespan,
    )
    app.state.platform = platform
    return app


def tune_garbage_collector() -> None:
    """Exclude imported objects from garbage collection, and enable it.

    Imports leave half a million permanent objects. Scanning them every few runs takes a third
    of a run's time.
    """
    gc.freeze()
    # Often enough to free the large bodies of failed requests.
    gc.set_threshold(5_000, 10, 10)
    gc.enable()


async def refused(request: Request, error: Any) -> JSONResponse:
    """Answer the host's own HTTP errors in the API's JSON format."""
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


async def health(request: Request) -> JSONResponse:
    """Answer 200 while the database accepts reads and writes, else 503, for load balancers.

    `reason` is then the state of the database, such as `disk full`. A damaged database still serves
    what is not damaged: the answer is 200 and has `"database": "damaged"`.

    The answer also reports Redis (`ok` or `away`), without which runs continue.
    """
    try:
        await asyncio.wait_for(database.healthcheck(), HEALTH_SECONDS)
    except DatabaseOutage as error:
        return JSONResponse({"status": "unavailable", "reason": error.state.value}, 503)
    except (RuntimeSqlError, TimeoutError) as error:
        logger.warning("The database does not answer", exc_info=error)
        return JSONResponse({"status": "unavailable", "reason": type(error).__name__}, 503)
    here = runtime.current()
    damage = {} if here.database.outage.damage is None else {"database": DatabaseState.DAMAGED}
    return JSONResponse({"status": "ok", **damage, **here.bus.wires.health()})
