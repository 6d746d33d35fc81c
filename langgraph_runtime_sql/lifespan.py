"""Lifespan: what starts and stops with the mounted application, in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog

from langgraph_runtime_sql import migrations, options, runtime
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.events.bus import LocalBus
from langgraph_runtime_sql.ops.assistants.rows import retire_system_assistants
from langgraph_runtime_sql.ops.runs import recovery
from langgraph_runtime_sql.ops.threads.end import sweep_ttl
from langgraph_runtime_sql.queue import queue
from langgraph_runtime_sql.queue.node_threads import NodeThreads
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.store.store import configured as configured_store
from langgraph_runtime_sql.tenancy import scope, tenants

logger = structlog.stdlib.get_logger(__name__)


def get_last_error() -> BaseException | None:
    """Why the last start failed, if it did."""
    return runtime.process.last_error


@asynccontextmanager
async def lifespan(
    app: Any = None,
    cancel_event: asyncio.Event | None = None,
    taskset: set[asyncio.Task[Any]] | None = None,
    *,
    with_cron_scheduler: bool = True,
    **_: Any,
) -> AsyncIterator[None]:
    """Run the platform: the database, the queue, the schedulers and the sweepers."""
    from langgraph_api import __version__ as api_version
    from langgraph_api.asyncio import set_event_loop

    runtime.process.last_error = None
    set_event_loop(asyncio.get_running_loop())
    logger.debug("Starting the SQL runtime", api_version=api_version)
    try:
        async with AsyncExitStack() as stack:
            # Not while others run in this context: a host's own tasks are not the platform's.
            with scope.within(scope.EVERYTHING):
                here = await _open(stack)
                await _start(stack, here, cancel_event, crons=with_cron_scheduler)
            yield
    except Exception as error:
        runtime.process.last_error = error
        raise


async def _open(stack: AsyncExitStack) -> Runtime:
    """Everything that is opened before, and closed after, anything runs."""
    from langgraph_api import _checkpointer, config, store
    from langgraph_api.graph import stop_remote_graphs
    from langgraph_api.http import stop_http_client, stop_webhook_http_client
    from langgraph_api.js.ui import start_ui_bundler, stop_ui_bundler
    from langgraph_api.metrics_otlp import (
        COUNTER_SERVER_REQUESTED_TO_STOP,
        COUNTER_SERVER_STARTED,
        COUNTER_SERVER_STOPPED,
        get_otlp_metrics_reporter,
    )

    reporter = get_otlp_metrics_reporter()
    stack.callback(reporter.shutdown)
    stack.callback(reporter.inc_counter, COUNTER_SERVER_STOPPED)
    # Cancelled workers still write, so the database closes last.
    here = await _open_runtime(stack)
    stack.push_async_callback(here.bus.stop)
    await here.bus.start()
    # The API makes its HTTP clients when it needs one; reading certificates takes a while.
    stack.push_async_callback(stop_webhook_http_client)
    stack.push_async_callback(stop_http_client)
    stack.push_async_callback(stop_remote_graphs)
    await start_ui_bundler()
    stack.push_async_callback(stop_ui_bundler)
    await _checkpointer.start_checkpointer()
    stack.push_async_callback(_checkpointer.exit_checkpointer)
    stack.push_async_callback(store.exit_store)
    reporter.initialize()
    reporter.inc_counter(COUNTER_SERVER_STARTED)
    stack.callback(reporter.inc_counter, COUNTER_SERVER_REQUESTED_TO_STOP)
    _widen_executor(config.N_JOBS_PER_WORKER)
    return here


async def _open_runtime(stack: AsyncExitStack) -> Runtime:
    """Open the database and make the bus, which the process's runtime holds until the end."""
    from langgraph_api import config

    configuration = runtime.configuration()
    wanted, redis_url = configuration.options, options.redis_url()
    # Before the database, whose start makes the store's tables as they are configured.
    store = configured_store(config.STORE_CONFIG)
    database = migrations.open_database(
        str(config.DATABASE_URI),
        tenant_key=wanted.tenant_key,
        store=store,
        power_loss=wanted.power_loss,
        shared=redis_url is not None,
    )
    stack.push_async_callback(database.stop)
    await database.start()
    await tenants.adopt(database, wanted.tenant_key)
    bus = await _make_bus(database, redis_url, wanted.redis_prefix)
    here = Runtime(
        database=database, bus=bus, store=store, options=wanted, hooks=configuration.hooks
    )
    stack.enter_context(runtime.running(here))
    # Again, because the last commits are announced while the runtime is still there.
    stack.push_async_callback(database.stop)
    return here


async def _make_bus(database: Database, redis_url: str | None, prefix: str | None) -> LocalBus:
    """The bus, not yet started.

    In Redis, all processes that serve the same database use the same prefix.
    """
    from langgraph_api import config

    keep_seconds = float(config.RESUMABLE_STREAM_TTL_SECONDS)
    if redis_url is None:
        return LocalBus(keep_seconds)
    # Only here, because one process without Redis does not need its driver.
    from langgraph_runtime_sql.events.redis.bus import RedisBus

    if prefix is None:
        prefix = f"threadhold:{await database.identity()}"
    return RedisBus(redis_url, keep_seconds, prefix=prefix)


def _widen_executor(slots: int) -> None:
    """Let as many blocking nodes run at once as there are slots.

    asyncio's own default executor has a handful of threads, so nodes that are
    plain functions would wait for each other long before the slots are used up.
    """
    if slots > 0:
        executor = NodeThreads(max_workers=slots + 16, thread_name_prefix="run-sync")
        asyncio.get_running_loop().set_default_executor(executor)


async def _start(
    stack: AsyncExitStack, here: Runtime, cancel_event: asyncio.Event | None, *, crons: bool
) -> None:
    """Everything that runs until the end."""
    from langgraph_api import config, graph
    from langgraph_api.asyncio import SimpleTaskGroup
    from langgraph_api.metadata import metadata_loop
    from langgraph_api.metrics_collector import collector_loop

    tasks = await stack.enter_async_context(
        SimpleTaskGroup(cancel=True, cancel_event=cancel_event, taskgroup_name="Lifespan")
    )
    tasks.create_task(metadata_loop())
    tasks.create_task(collector_loop())
    await _open_store(tasks)
    graph.patch_packages_distributions()
    await graph.collect_graphs_from_env(True)
    await _retire_assistants(here)
    recovered = await recovery.recover()
    if recovered:
        logger.warning("Took back runs", action="runs_recovered", run_ids=recovered)
    if config.N_JOBS_PER_WORKER > 0:
        # Stopped before the group, which would give its workers no time.
        work = queue.Queue(here, config.N_JOBS_PER_WORKER, isolated=config.BG_JOB_ISOLATED_LOOPS)
        task = asyncio.create_task(work.run(), name="queue")
        stack.push_async_callback(_cancel, task)
    if crons and config.FF_CRONS_ENABLED:
        from langgraph_api.cron_scheduler import cron_scheduler

        tasks.create_task(cron_scheduler())
    tasks.create_task(_sweep_threads(here))


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("The queue failed", action="queue_failed", exc_info=error)


async def _open_store(tasks: Any) -> None:
    """Open the store, and show it to graph factories."""
    from langchain_core.runnables.config import var_child_runnable_config
    from langgraph._internal._constants import CONFIG_KEY_RUNTIME
    from langgraph.constants import CONF
    from langgraph.runtime import Runtime as GraphRuntime
    from langgraph_api import store as api_store

    await api_store.collect_store_from_env()
    store = await api_store.get_store()
    if not api_store.CUSTOM_STORE:
        tasks.create_task(store.start_ttl_sweeper())
    var_child_runnable_config.set({CONF: {CONFIG_KEY_RUNTIME: GraphRuntime(store=store)}})


async def _retire_assistants(here: Runtime) -> None:
    """System assistants of graphs that are gone are gone with them."""
    from langgraph_api.graph import SYSTEM_ASSISTANT_IDS

    live = set(SYSTEM_ASSISTANT_IDS)
    await here.database.write(lambda conn: retire_system_assistants(conn, live))


async def _sweep_threads(here: Runtime) -> None:
    """End the lives of threads whose time to live has passed."""
    from langgraph_api import config

    settings = config.THREAD_TTL or {}
    interval = float(settings.get("sweep_interval_minutes") or 5) * 60
    if here.bus.shared:
        # Results that were kept for somebody who never came go the same way.
        interval = min(interval, 60.0)
    while True:
        try:
            _, swept = await sweep_ttl(limit=settings.get("sweep_limit") or 1000)
            if swept:
                logger.info("Ended threads", action="threads_expired", count=swept)
        except Exception:
            logger.exception("The thread sweep failed", action="thread_sweep_failed")
        # Where no queue does: a process that only answers tells of states and cancellations, too.
        here.bus.expire()
        await asyncio.sleep(interval)


lifespan.get_last_error = get_last_error  # type: ignore[attr-defined]  # where the API looks
