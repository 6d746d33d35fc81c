"""The host app: a health route, an access log and an error boundary around the platform."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from langgraph_runtime_sql import database, runtime
from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.config_file import ConfigFile, read_config
from threadhold.http.error_boundary import ErrorBoundary
from threadhold.http.json_limits import Limits, find_problem, too_large
from threadhold.platform import LangGraphPlatform
from threadhold.serving.logs import AccessLog
from threadhold.settings import Settings

__all__ = [
    "AuthenticationMissing",
    # For routes of a host that stand beside the platform.
    "ErrorBoundary",
    "Limits",
    "create_app",
    "create_platform",
    "find_problem",
    "host",
    "prefix",
    "too_large",
]

logger = logging.getLogger(__name__)

HEALTH_SECONDS = 3.0


class AuthenticationMissing(RuntimeSqlError):
    """The project has no authentication, and this environment asks for it."""


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


def create_platform(
    settings: Settings,
    *,
    project: ConfigFile | None = None,
    studio: bool = False,
    metrics_permission: str | None = None,
    env: Mapping[str, str] | None = None,
) -> LangGraphPlatform:
    """Make the platform that the settings describe.

    Args:
        settings: The server's settings.
        project: Their `langgraph.json`, where it has been read already.
        studio: Let LangGraph Studio reach the server from a browser.
        metrics_permission: As in `LangGraphPlatform`.
        env: As in `LangGraphPlatform`.

    Raises:
        ConfigError: the project cannot be served.
        AuthenticationMissing: outside `local_dev`, without `auth` in the project.
    """
    origins = settings.cors_allow_origins
    project = read_config(settings.langgraph_json) if project is None else project
    platform = LangGraphPlatform(
        project,
        database_url=settings.database_url,
        redis_url=settings.redis_url,
        redis_prefix=settings.redis_prefix,
        durability=settings.durability,
        n_jobs=settings.n_jobs_per_worker,
        grace_seconds=settings.shutdown_grace_seconds,
        cors={"allow_origins": list(origins)} if origins else None,
        max_body_bytes=settings.max_body_bytes,
        max_json_nodes=settings.max_json_nodes,
        max_json_depth=settings.max_json_depth,
        allow_private_webhooks=settings.allow_private_webhooks,
        studio=studio,
        metrics_permission=metrics_permission,
        env=env,
    )
    if not settings.is_local and not project.sections["auth"]:
        raise AuthenticationMissing(
            f"APP_ENV={settings.app_env} needs authentication: {project.source} has no "
            "'auth', so anybody could read and change everything. Add one, or use "
            "APP_ENV=local_dev on your own machine."
        )
    return platform


def host(
    platform: LangGraphPlatform,
    *,
    around: Sequence[Middleware] = (),
    close: Callable[[], None] | None = None,
) -> Starlette:
    """Make the app that serves a platform, at the prefix that its project asks for.

    Args:
        platform: The platform.
        around: Middleware around the platform, outermost first.
        close: Called once everything has stopped.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            async with platform.lifespan(app):
                _spare_the_collector()
                yield
        finally:
            if close is not None:
                close()

    app = Starlette(
        routes=[
            Route("/health", health),
            Mount(prefix(platform.config) or "/", app=platform, middleware=[*around]),
        ],
        middleware=[Middleware(AccessLog)],
        exception_handlers={HTTPException: refused},
        lifespan=lifespan,
    )
    app.state.platform = platform
    return app


def prefix(project: ConfigFile) -> str:
    """The path that a project is served under; empty at the root."""
    return str(project.sections["http"].get("mount_prefix") or "")


def _spare_the_collector() -> None:
    """Keep Python's garbage collector off what stays for good.

    Half a million objects are imported and never go away; looking at them again
    every few runs takes a third of a run's time.
    """
    gc.freeze()
    # Still often enough that large bodies in failed requests do not pile up.
    gc.set_threshold(5_000, 10, 10)
    gc.enable()


async def refused(request: Request, error: Exception) -> JSONResponse:
    """Answer what the host itself refuses, in the shape that the API's errors have."""
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


async def health(request: Request) -> JSONResponse:
    """200 while the database answers reads and writes, else 503. For load balancers.

    With Redis it says how that is: `ok` or `away`. Runs go on without it.
    """
    try:
        await asyncio.wait_for(database.healthcheck(), HEALTH_SECONDS)
    except (RuntimeSqlError, TimeoutError) as error:
        logger.warning("The database does not answer", exc_info=error)
        return JSONResponse({"status": "unavailable", "reason": type(error).__name__}, 503)
    return JSONResponse({"status": "ok", **runtime.current().bus.health()})
