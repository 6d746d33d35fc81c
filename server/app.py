"""The host app: our own routes first, then the platform."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from langgraph_runtime_sql import database
from langgraph_runtime_sql.embed import LangGraphPlatform
from langgraph_runtime_sql.errors import RuntimeSqlError
from server.logs import AccessLog
from server.settings import Settings

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
        AuthenticationMissing: outside `local_dev`, without `auth` in the project.
    """
    platform = create_platform(settings, studio=studio)
    prefix = platform.config.sections["http"].get("mount_prefix") or ""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with platform.lifespan(app):
            _spare_the_collector()
            yield

    app = Starlette(
        routes=[Route("/health", health), Mount(prefix or "/", app=platform)],
        middleware=[Middleware(AccessLog)],
        lifespan=lifespan,
    )
    app.state.platform = platform
    return app


def create_platform(settings: Settings, *, studio: bool = False) -> LangGraphPlatform:
    """The platform that the settings describe. Raises as `create_app` does."""
    origins = settings.cors_allow_origins
    platform = LangGraphPlatform(
        settings.langgraph_json,
        database_url=settings.database_url,
        durability=settings.durability,
        n_jobs=settings.n_jobs_per_worker,
        grace_seconds=settings.shutdown_grace_seconds,
        cors={"allow_origins": list(origins)} if origins else None,
        max_body_bytes=settings.max_body_bytes,
        allow_private_webhooks=settings.allow_private_webhooks,
        studio=studio,
    )
    if settings.app_env != "local_dev" and not platform.config.sections["auth"]:
        raise AuthenticationMissing(
            f"APP_ENV={settings.app_env} needs authentication: {platform.config.source} has no "
            "'auth', so anybody could read and change everything. Add one, or use "
            "APP_ENV=local_dev on your own machine."
        )
    return platform


def _spare_the_collector() -> None:
    """Keep Python's garbage collector off what stays for good.

    Half a million objects are imported and never go away; looking at them again
    every few runs takes a third of a run's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


async def health(request: Request) -> JSONResponse:
    """200 while the database answers reads and writes, else 503. For load balancers."""
    try:
        await asyncio.wait_for(database.healthcheck(), HEALTH_SECONDS)
    except (RuntimeSqlError, TimeoutError) as error:
        logger.warning("The database does not answer", exc_info=error)
        return JSONResponse({"status": "unavailable", "reason": type(error).__name__}, 503)
    return JSONResponse({"status": "ok"})
