"""The host app: our own routes first, then the platform."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from hooks import settings as auth_settings
from hooks.thread_settings import ThreadSettings
from langgraph_runtime_sql import database, runtime
from langgraph_runtime_sql.errors import RuntimeSqlError
from my_agent import database as product_database
from server.logs import AccessLog
from server.project import check_graphs, has_our_identity
from server.routes import ProductRoutes, offered
from server.settings import Settings
from threadhold.config_file import read_config
from threadhold.http.json_limits import Limits
from threadhold.platform import LangGraphPlatform

logger = logging.getLogger(__name__)

HEALTH_SECONDS = 3.0


class AuthenticationMissing(RuntimeSqlError):
    """The project has no authentication, and this environment asks for it."""


def create_app(settings: Settings, *, studio: bool = False) -> Starlette:
    """The app that `threadhold serve` runs.

    Args:
        settings: The server's settings.
        studio: Let LangGraph Studio reach the server from a browser.

    Returns:
        The app; its platform is `app.state.platform`.

    Raises:
        ConfigError: the project cannot be served.
        AuthenticationMissing: outside `local_dev`, without `auth` in the project
            or without a key for it.
        BadSetting: a setting of one of our graphs has a value it cannot have.
    """
    platform = create_platform(settings, studio=studio)
    check_graphs(platform.config.graphs)
    product_database.use(settings.database_url)
    prefix = platform.config.sections["http"].get("mount_prefix") or ""
    products = Middleware(
        ProductRoutes,
        max_body_bytes=settings.max_body_bytes,
        limits=Limits(settings.max_json_nodes, settings.max_json_depth),
        products=offered(platform.config.graphs),
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            async with platform.lifespan(app):
                _spare_the_collector()
                yield
        finally:
            product_database.close()

    app = Starlette(
        routes=[
            Route("/health", health),
            Mount(prefix or "/", app=platform, middleware=[products]),
        ],
        middleware=[Middleware(AccessLog)],
        exception_handlers={HTTPException: refused},
        lifespan=lifespan,
    )
    app.state.platform = platform
    return app


def create_platform(settings: Settings, *, studio: bool = False) -> LangGraphPlatform:
    """The platform that the settings describe. Raises as `create_app` does."""
    origins = settings.cors_allow_origins
    project = read_config(settings.langgraph_json)
    auth = project.sections["auth"]
    ours = has_our_identity(auth)
    if ours:
        check_identity(settings)
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
        # They are of all tenants.
        metrics_permission=auth_settings.OPERATOR if ours else None,
        env={**(settings.environment() if ours else {}), **ThreadSettings.environment(settings)},
    )
    if settings.app_env != "local_dev" and not auth:
        raise AuthenticationMissing(
            f"APP_ENV={settings.app_env} needs authentication: {project.source} has no "
            "'auth', so anybody could read and change everything. Add one, or use "
            "APP_ENV=local_dev on your own machine."
        )
    return platform


def check_identity(settings: Settings) -> None:
    """Refuse to start where nobody's token could be verified.

    Raises:
        AuthenticationMissing: there is no key, or it cannot be read.
    """
    # Here, because it brings all of cryptography, which other projects never need.
    from hooks.identity import Authenticator

    try:
        Authenticator(settings)
    except ValueError as error:
        raise AuthenticationMissing(str(error)) from error


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
    """What the host itself refuses, in the shape that the API's errors have."""
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
