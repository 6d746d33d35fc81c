"""LangGraphPlatform: mount the stock LangGraph API in a host app.

    platform = LangGraphPlatform("langgraph.json", database_url="sqlite:///data/app.db")
    app = Starlette(routes=[Mount("/", app=platform)], lifespan=platform.lifespan)

`langgraph_api` reads environment variables when it is imported. Only this module sets them. It
imports `langgraph_api` late, so that a module of the host can create the platform at import.
"""

import functools
import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Router
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from langgraph_runtime_sql import hooks as hook_protocol
from langgraph_runtime_sql import process
from langgraph_runtime_sql.database.url import database_path, is_postgres, postgres_dsn
from langgraph_runtime_sql.errors import RuntimeSqlError
from langgraph_runtime_sql.events.redis import url as redis_urls
from langgraph_runtime_sql.options import ProjectOptions
from threadhold import host_objects, sessions, start_errors, users
from threadhold.config_file import ConfigError, ConfigFile, read_config
from threadhold.environment import Environment, environment
from threadhold.extras import require, require_clients
from threadhold.host_objects import Authenticate
from threadhold.http import (
    added_routes,
    audit,
    authentication,
    error_handlers,
    host_routes,
    metrics_text,
    middleware,
    openapi,
    origins,
    rate_limits,
)
from threadhold.http.host_routes import LargeBody
from threadhold.http.json_limits import JsonLimits
from threadhold.http.metrics_access import MetricsAccess
from threadhold.options import PlatformOptions, ServedOptions, shared, takes
from threadhold.serving import host_logs
from threadhold.stock import elsewhere, starts, table
from threadhold.stock.replacement import check, install_all
from threadhold.tables import lend, lent
from threadhold.users import User

logger = logging.getLogger(__name__)

FORBIDDEN_PREFIXES = ("/ui", "/noauth")
# A tenth is reserved for tenants without running runs, so that one tenant has 100 and a few more.
DEFAULT_JOBS = 120
NOT_RUNNING = "The platform is not running: the host app must enter platform.lifespan"


class PlatformAlreadyConfigured(RuntimeSqlError):
    """This process is already configured for another platform."""


class ForbiddenPrefix(RuntimeSqlError, ValueError):
    """The platform is mounted where the stock API would let requests in without authentication."""

    def __init__(self, prefix: str) -> None:
        super().__init__(
            f"The platform cannot be mounted at {prefix!r}: under a prefix that begins with "
            f"{' or '.join(FORBIDDEN_PREFIXES)} the stock API skips authentication. "
            "Choose another prefix, such as '/langgraph'."
        )


@dataclass(frozen=True)
class _Claim:
    """Configuration of a process, which cannot change after the first platform."""

    environment: Environment
    project_env: dict[str, str]
    options: ServedOptions

    def differences(self, other: "_Claim") -> list[str]:
        """Return the names of options and variables that differ, without values: secrets."""
        mine, others = (
            {"project_env": claim.project_env, **vars(claim.options), **claim.environment}
            for claim in (self, other)
        )
        return sorted(
            name for name in mine.keys() | others.keys() if mine.get(name) != others.get(name)
        )


class _Process:
    """State of the process, because `langgraph_api` can be configured only once.

    Attributes:
        claim: The configuration; None until the first platform is made.
        stock_app: The stock application; None until its first use.
        running: Whether a platform is in its lifespan.
    """

    def __init__(self) -> None:
        self.claim: _Claim | None = None
        self.stock_app: Starlette | None = None
        self.running = False


_process = _Process()


class LangGraphPlatform:
    """The LangGraph API as an ASGI app, with the lifespan that runs it.

    Mount it at the root or at a prefix, in Starlette or FastAPI, and give the
    host `platform.lifespan`, alone or inside a lifespan of its own:

        async with platform.lifespan(app), my_pool():
            yield

    `langgraph_api` has one configuration per process. A process may create the same platform
    again, and start and stop it repeatedly.

    The arguments are the fields of `PlatformOptions` in `threadhold.options`, which describes them.

    Raises:
        ConfigError: the configuration cannot be served.
        BadDatabaseUrl: the database URL cannot be used.
        MissingExtra: a database, a Redis or a store's index needs a package that is not installed.
        BadRedis: the Redis URL or prefix cannot be used.
        PlatformAlreadyConfigured: this process already serves another
            configuration, or `langgraph_api` was imported before.
    """

    @takes(PlatformOptions)
    def __init__(self, options: PlatformOptions) -> None:
        file = _with_authentication(read_config(options.config), options.authenticate)
        _check_extras(file, options.database_url, options.redis_url)
        if options.redis_url is not None:
            _check_redis(options.redis_url, options.redis_prefix, options.database_url)
        self.config = file
        self._mount_prefix = str(file.sections["http"].get("mount_prefix") or "")
        _check_prefix(self._mount_prefix)
        served = _served(options, file)
        owned = environment(file, served)
        env = options.env or {}
        self._claim = _Claim(
            environment=owned,
            project_env=_without_owned(file.env, owned, file.source)
            | _without_owned(env, owned, "env"),
            options=served,
        )
        _configure(self._claim, explicit=env, import_paths=map(str, file.import_paths))
        # Not those of an earlier platform of this process.
        self.include(())

    @property
    def max_body_bytes(self) -> int:
        """Larger request bodies get a 413."""
        return self._claim.options.max_body_bytes

    @property
    def app(self) -> Starlette:
        """The stock application; the first use imports `langgraph_api`."""
        if _process.stock_app is None:
            _process.stock_app = _load(self._claim)
            host_routes.place(_process.stock_app, _json_limits(self._claim.options))
        return _process.stock_app

    def include(
        self,
        routes: Iterable[BaseRoute],
        *,
        large: Iterable[tuple[BaseRoute, LargeBody]] = (),
        openapi: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Serve routes of the host beside those of the API, inside of its limits, CORS and audit log.

        They authenticate by `user`. A route with the path of one of the API's comes first.

        Args:
            routes: The routes, which replace those of an earlier call.
            large: Those that read larger bodies than `max_body_bytes`, with what they read.
            openapi: Their `paths` and `components`, for `/openapi.json` and `/docs`.
        """
        host_routes.use(routes, large, openapi)
        if _process.stock_app is not None:
            host_routes.place(_process.stock_app, _json_limits(self._claim.options))

    async def user(self, request: HTTPConnection) -> User:
        """Return the user of a request or WebSocket of any route of the host.

        The platform authenticates the request once, and counts it once for the user's limits.

        Args:
            request: The request.

        Raises:
            HTTPException: (401, 403) the project's authentication refuses it; (429) it exceeds a
                limit; (503) the platform is not running.
        """
        if not _process.running:
            raise HTTPException(503, NOT_RUNNING)
        return await users.of(request)

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """Run the platform (database, queue, scheduler) in the host `app`.

        Raises:
            CannotLoad: a graph or another object that the project names cannot be loaded.
            ForbiddenPrefix: `app` mounts the platform at a forbidden prefix.
            PlatformAlreadyConfigured: the platform is running already.
        """
        if _process.running:
            raise PlatformAlreadyConfigured(
                "The platform is already running in this process; it cannot be started twice."
            )
        for prefix in _prefixes(self, getattr(app, "routes", ())):
            _check_prefix(prefix)
        origins.respect(getattr(app, "user_middleware", ()))
        async with AsyncExitStack() as stack:
            try:
                stock = self.app
                starts.forget_store()
                _process.running = True
                stack.callback(setattr, _process, "running", False)
                # Before the queue starts, whose runs use them.
                lend(lent.Lent(), (RuntimeSqlError,))
                await stack.enter_async_context(stock.router.lifespan_context(stock))
                await stack.enter_async_context(sessions.watching())
                stack.push_async_callback(audit.refusals.flush)
                await stack.enter_async_context(metrics_text.offered())
                await stack.enter_async_context(lent.expiring())
            except RuntimeSqlError as error:
                found = start_errors.describe(error)
                start_errors.shorten(found)
                raise found from error
            except Exception as error:
                if (explained := start_errors.explain(error, self.config)) is None:
                    raise
                start_errors.shorten(explained)
                raise explained from error
            yield

    def describe_in(self, app: Any, prefix: str = "") -> None:
        """Add the platform's routes to the OpenAPI description, and so to `/docs`, of a FastAPI host.

        Args:
            app: The FastAPI app.
            prefix: Where the app mounts the platform.

        Raises:
            ConfigError: `app` is no FastAPI app.
        """
        described = getattr(app, "openapi", None)
        if described is None:
            raise ConfigError(f"describe_in: {type(app).__name__} is no FastAPI app")

        def openapi_with_platform() -> dict[str, Any]:
            if app.openapi_schema is None:
                app.openapi_schema = openapi.joined(described(), prefix + self._mount_prefix)
            found: dict[str, Any] = app.openapi_schema
            return found

        # FastAPI calls the attribute, so that hosts can replace it.
        app.openapi = openapi_with_platform

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            # Served alone, or by a host that passes lifespan events on.
            await Router(lifespan=self.lifespan).lifespan(scope, receive, send)
            return
        try:
            _check_prefix(scope.get("root_path", ""))
        except ForbiddenPrefix as error:
            _log_once(str(error))
            await _refuse(421, str(error), scope, receive, send)
            return
        if _process.running:
            inside = _below_prefix(scope, self._mount_prefix)
            if inside is None:
                await _refuse(404, "Not Found", scope, receive, send)
            else:
                await self.app(inside, receive, send)
        else:
            await _refuse(503, NOT_RUNNING, scope, receive, send)


def _with_authentication(file: ConfigFile, authenticate: Authenticate | None) -> ConfigFile:
    """Return the configuration with the host's function in place of the project's."""
    if authenticate is None:
        return file
    section = file.sections["auth"]
    path = host_objects.auth(authenticate, section.get("path"))
    sections = {**file.sections, "auth": {**section, "path": path}}
    return file.model_copy(update={"sections": sections})


def _check_extras(file: ConfigFile, database_url: str, redis_url: str | None) -> None:
    """Check that optional packages are installed, before anything imports them."""
    require_clients(database_url, redis_url)
    if file.sections["store"].get("index"):
        require("vectors", f"{file.source}: store.index")


def _served(options: PlatformOptions, file: ConfigFile) -> ServedOptions:
    """Return the options together with those of the project."""
    return ServedOptions(
        **{
            **vars(options),
            **shared(file, ProjectOptions),
            # Its content is compared instead, in the environment.
            "config": file.source,
            "database_url": _absolute(options.database_url),
            "hooks": file.hooks if options.hooks is None else options.hooks,
            "thread_tables": lent.thread_tables,
        }
    )


def _check_redis(redis_url: str, prefix: str | None, database_url: str) -> None:
    """Refuse Redis with SQLite, and an invalid URL or prefix."""
    if not is_postgres(database_url):
        raise ConfigError(
            "redis_url: a SQLite file has one process, which needs no Redis. Leave it out, or "
            "use a postgresql:// database, which several processes may share."
        )
    redis_urls.check_url(redis_url)
    if prefix is not None:
        redis_urls.check_prefix(prefix)


def _absolute(database_url: str) -> str:
    """Make the path of a SQLite URL absolute, because the process may change its directory."""
    if is_postgres(database_url):
        return postgres_dsn(database_url)
    return f"sqlite:///{database_path(database_url)}"


def _without_owned(env: Mapping[str, str], owned: Environment, source: str) -> dict[str, str]:
    """Return `env` without the variables that the platform sets itself."""
    for name in env.keys() & owned.keys():
        logger.warning("%s: env.%s is ignored: the platform sets it", source, name)
    return {name: value for name, value in env.items() if name not in owned}


def _configure(claim: _Claim, *, explicit: Mapping[str, str], import_paths: Iterable[str]) -> None:
    """Configure the process for `claim`, unless it has this configuration already."""
    known = _process.claim
    if known is not None and (differences := claim.differences(known)):
        raise PlatformAlreadyConfigured(
            "This process already serves another configuration (different: "
            f"{', '.join(differences)}). langgraph_api reads its settings once, when it is "
            "imported, so a process can serve one platform: start another process for the second."
        )
    if known is None and _imported_otherwise(claim.environment):
        raise PlatformAlreadyConfigured(
            "langgraph_api was imported before the platform was made, with other settings. It "
            "reads them once, when it is imported: create the LangGraphPlatform before any "
            "module imports langgraph_api."
        )
    _process.claim = claim
    _set_environment(claim, explicit)
    sys.path += [path for path in import_paths if path not in sys.path]


def _imported_otherwise(owned: Environment) -> bool:
    return "langgraph_api.config" in sys.modules and any(
        os.environ.get(name) != value for name, value in owned.items()
    )


def _set_environment(claim: _Claim, explicit: Mapping[str, str]) -> None:
    for name, value in claim.project_env.items():
        # Variables of the process override the project's file.
        if name in explicit or name not in os.environ:
            os.environ[name] = value
    for name, setting in claim.environment.items():
        if setting is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = setting
    os.environ.setdefault("N_JOBS_PER_WORKER", str(DEFAULT_JOBS))
    # Between two scrapes; a minute would show old gauges of workers.
    os.environ.setdefault("STATS_INTERVAL_SECS", "10")


def _json_limits(options: ServedOptions) -> JsonLimits:
    return JsonLimits(options.max_json_nodes, options.max_json_depth)


def _load(claim: _Claim) -> Starlette:
    """Import the stock application and put ours around it. Call once per process."""
    install_all(table.BEFORE_IMPORT)
    root = logging.getLogger()
    level = root.level
    host_logs.configure()
    try:
        server = importlib.import_module("langgraph_api.server")
    except Exception:
        # The import loads the project's authentication, which needs them.
        check(elsewhere.AUTH)
        raise
    # langgraph_api sets the level of the root logger, which belongs to the host.
    root.setLevel(level)

    options = claim.options
    hooks = _import_object(options.hooks) if isinstance(options.hooks, str) else options.hooks
    try:
        hook_protocol.check(hooks)
    except TypeError as error:
        raise ConfigError(f"hooks: {error}") from error
    process.configure(options, hooks)
    app: Starlette = server.app
    # Before the layers, which wrap its routes.
    install_all(table.TABLE)
    added_routes.install(app)
    rate_limits.install(options.limits, options.tenant_key)
    middleware.install(
        app,
        max_body_bytes=options.max_body_bytes,
        body_timeout_seconds=options.body_timeout_seconds,
        limits=_json_limits(options),
        private_network=options.studio,
    )
    error_handlers.install(app)
    metrics = MetricsAccess(
        options.metrics_permission, options.metrics_token, bool(options.public_metrics)
    )
    authentication.install(app, metrics=metrics)
    audit.install(app, permission=options.audit_permission)
    openapi.install(app, page=options.docs_page is not False)
    return app


def _import_object(spec: str) -> Any:
    """Import the object of `file.py:name` or `module:name`.

    Raises:
        ConfigError: it cannot be imported.
    """
    target, _, name = spec.rpartition(":")
    try:
        module = _import_file(target) if target.endswith(".py") else importlib.import_module(target)
        return getattr(module, name)
    except (ImportError, AttributeError, OSError) as error:
        raise ConfigError(f"hooks: cannot import {spec!r}: {error}") from error


def _import_file(path: str) -> Any:
    name = "hooks_of_" + "".join(char if char.isalnum() else "_" for char in path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _prefixes(platform: LangGraphPlatform, routes: Iterable[Any], prefix: str = "") -> list[str]:
    """Return the prefixes at which the host's routes mount the platform."""
    found: list[str] = []
    for route in routes:
        path = prefix + getattr(route, "path", "")
        # With middleware on the mount, `app` is the outermost middleware.
        if platform in (getattr(route, "app", None), getattr(route, "_base_app", None)):
            found.append(path)
        elif not isinstance(getattr(route, "app", None), LangGraphPlatform):
            found += _prefixes(platform, getattr(route, "routes", None) or (), path)
    return found


@functools.cache
def _log_once(message: str) -> None:
    """Log an error of the host at the first request only."""
    logger.error("%s", message)


def _below_prefix(scope: Scope, prefix: str) -> Scope | None:
    """Return the scope of a request below `http.mount_prefix`, or None if it is not below it.

    A host that mounts the platform at a prefix has decided itself. `/ok` is for probes, which ask
    for it at the root.
    """
    root = scope.get("root_path", "")
    if not prefix or root != scope.get("app_root_path", root):
        return scope
    path = scope["path"].removeprefix(root)
    if path == "/ok":
        return scope
    if path != prefix and not path.startswith(f"{prefix}/"):
        return None
    # In place, as Starlette's mounts do: outer layers read the user and the route from it.
    scope.update(root_path=root + prefix, app_root_path=root)
    return scope


def _check_prefix(prefix: str) -> None:
    if prefix.startswith(FORBIDDEN_PREFIXES):
        raise ForbiddenPrefix(prefix)


async def _refuse(status: int, detail: str, scope: Scope, receive: Receive, send: Send) -> None:
    response = (
        WebSocketClose(code=1013, reason=detail[:120])
        if scope["type"] == "websocket"
        else JSONResponse({"detail": detail}, status)
    )
    await response(scope, receive, send)
