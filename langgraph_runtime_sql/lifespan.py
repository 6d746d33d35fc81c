"""Lifespan: start and stop the runtime with the application, in order."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import structlog

from langgraph_runtime_sql import gauges, migrations, options, process, ui_bundler
from langgraph_runtime_sql.audit import retention as audit_retention
from langgraph_runtime_sql.audit.links import EVERY_SECONDS as LINK_SECONDS
from langgraph_runtime_sql.audit.links import Linker
from langgraph_runtime_sql.database import outage
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.url import is_postgres
from langgraph_runtime_sql.encryption import keys
from langgraph_runtime_sql.events import retention
from langgraph_runtime_sql.events.bus import Bus
from langgraph_runtime_sql.events.redis import url
from langgraph_runtime_sql.events.redis.signing_key import signing_key
from langgraph_runtime_sql.events.wires import Wires
from langgraph_runtime_sql.gate import idempotency
from langgraph_runtime_sql.limits import stored_count
from langgraph_runtime_sql.ops.assistants.rows import retire_system_assistants
from langgraph_runtime_sql.ops.runs import claim as run_claim
from langgraph_runtime_sql.ops.runs import recovery
from langgraph_runtime_sql.ops.threads import retention as thread_retention
from langgraph_runtime_sql.ops.threads.end import sweep_hook, sweep_ttl
from langgraph_runtime_sql.periodic import periodic
from langgraph_runtime_sql.queue import queue
from langgraph_runtime_sql.queue.node_threads import NodeThreads
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.stopping import Stopping, server_stops
from langgraph_runtime_sql.store.store import configured as configured_store
from langgraph_runtime_sql.telemetry import metrics, tracing
from langgraph_runtime_sql.tenancy import scope, tenants
from langgraph_runtime_sql.webhooks.delivery import Delivery

logger = structlog.stdlib.get_logger(__name__)

# How often retention is applied. A start does not wait for it.
EVENT_SWEEP_SECONDS = 60.0
# How often a platform looks whether the host's server stops.
LOOK_SECONDS = 0.25
# How long open streams wait for the runs of this process to return to the queue.
HAND_BACK_SECONDS = 1.0


def get_last_error() -> BaseException | None:
    """Return the error of the last start, or None."""
    return process.process.last_error


@asynccontextmanager
async def lifespan(
    app: Any = None,
    cancel_event: asyncio.Event | None = None,
    taskset: set[asyncio.Task[Any]] | None = None,
    *,
    with_cron_scheduler: bool = True,
    **_: Any,
) -> AsyncIterator[None]:
    """Run the platform: database, queue, schedulers and sweepers."""
    from langgraph_api import __version__ as api_version
    from langgraph_api.asyncio import set_event_loop

    process.process.last_error = None
    set_event_loop(asyncio.get_running_loop())
    logger.debug("Runtime started", api_version=api_version)
    try:
        async with AsyncExitStack() as stack:
            # Ends before the yield: the host's own tasks must not see all tenants' rows.
            with scope.within(scope.EVERYTHING):
                opened = await _open(stack)
                await _start(stack, opened, cancel_event, crons=with_cron_scheduler)
            yield
    except Exception as error:
        process.process.last_error = error
        raise


async def _open(stack: AsyncExitStack) -> Runtime:
    """Open what the tasks need. It closes after all of them have ended."""
    from langgraph_api import _checkpointer, config, store
    from langgraph_api.graph import stop_remote_graphs
    from langgraph_api.http import stop_http_client, stop_webhook_http_client
    from langgraph_api.metrics_otlp import (
        COUNTER_SERVER_REQUESTED_TO_STOP,
        COUNTER_SERVER_STARTED,
        COUNTER_SERVER_STOPPED,
        get_otlp_metrics_reporter,
    )

    reporter = get_otlp_metrics_reporter()
    stack.callback(reporter.shutdown)
    stack.callback(reporter.inc_counter, COUNTER_SERVER_STOPPED)
    stack.push_async_callback(tracing.stop)
    tracing.start()
    # The database closes last, because cancelled workers still write.
    opened = await _open_runtime(stack)
    stack.push_async_callback(opened.bus.stop)
    await opened.bus.start()
    # The API opens its HTTP clients on demand.
    stack.push_async_callback(stop_webhook_http_client)
    stack.push_async_callback(stop_http_client)
    stack.push_async_callback(stop_remote_graphs)
    if opened.options.folder is not None:
        await stack.enter_async_context(ui_bundler.bundling(opened.options.folder))
    await _checkpointer.start_checkpointer()
    stack.push_async_callback(_checkpointer.exit_checkpointer)
    stack.push_async_callback(store.exit_store)
    reporter.initialize()
    reporter.inc_counter(COUNTER_SERVER_STARTED)
    stack.callback(reporter.inc_counter, COUNTER_SERVER_REQUESTED_TO_STOP)
    _widen_executor(config.N_JOBS_PER_WORKER)
    return opened


async def _open_runtime(stack: AsyncExitStack) -> Runtime:
    """Open the database and create the bus."""
    from langgraph_api import config

    configuration = process.configuration()
    settings, redis_url = configuration.options, options.redis_url()
    # The start of the database creates the store's tables as configured.
    store = configured_store(config.STORE_CONFIG)
    database = migrations.open_database(
        str(config.DATABASE_URI),
        tenant_key=settings.tenant_key,
        store=store,
        power_loss=settings.durability == "power-loss",
        shared=is_postgres(str(config.DATABASE_URI)),
    )
    stack.push_async_callback(database.stop)
    await database.start()
    timings = metrics.process()
    database.measure((timings.reads.observe, timings.writes.observe))
    gauges.gauges()
    metrics.runs()
    await database.read(keys.check)
    await tenants.adopt(database, settings.tenant_key)
    bus = await _make_bus(database, redis_url, settings.redis_prefix)
    opened = Runtime(
        database=database,
        bus=bus,
        store=store,
        options=settings,
        hooks=configuration.hooks,
        stopping=Stopping(settings.grace_seconds),
    )
    stack.enter_context(process.running(opened))
    # Stop it before the runtime goes: the last commits are announced on the bus.
    stack.push_async_callback(database.stop)
    return opened


async def _make_bus(database: Database, redis_url: str | None, prefix: str | None) -> Bus:
    """Create the bus without starting it.

    All processes on one database use the same channel prefix in Redis.
    """
    if database.dialect_name == "sqlite":
        return Bus(database, run_claim.OWNER)
    # Imported late: a server on SQLite needs no driver of Postgres or Redis.
    from langgraph_runtime_sql.database.url import postgres_dsn
    from langgraph_runtime_sql.events.postgres_wire import PostgresWire

    dsn = postgres_dsn(database.url)

    def postgres(bus: Bus) -> PostgresWire:
        return PostgresWire(dsn, bus.name, bus.receive, bus.look_again)

    if redis_url is None:
        return Bus(database, run_claim.OWNER, lambda bus: Wires(postgres(bus)))
    from langgraph_runtime_sql.events.redis.wire import RedisWire

    if url.is_exposed(redis_url):
        logger.warning(
            "Redis is on another host and without TLS: others on the network may read and change "
            "its messages. Use rediss:// unless the network is private",
            action="redis_without_tls",
            url=url.shown(redis_url),
        )
    named = prefix or f"threadhold:{await database.identity()}"
    key = await database.write(signing_key)

    def redis(bus: Bus) -> RedisWire:
        hears = (bus.receive, bus.receive_events, bus.look_again)
        return RedisWire(redis_url, bus.name, key, *hears, prefix=named)

    return Bus(database, run_claim.OWNER, lambda bus: Wires(postgres(bus), redis(bus)))


def _widen_executor(slots: int) -> None:
    """Give the event loop enough threads for a blocking node in each slot.

    asyncio's default executor has few threads, so plain functions would wait for each other.
    """
    if slots > 0:
        threads = NodeThreads(max_workers=slots + 16, thread_name_prefix="run-sync")
        threads.equip(asyncio.get_running_loop())


async def _start(
    stack: AsyncExitStack, opened: Runtime, cancel_event: asyncio.Event | None, *, crons: bool
) -> None:
    """Start the tasks that run until the end."""
    from langgraph_api import graph
    from langgraph_api.asyncio import SimpleTaskGroup
    from langgraph_api.metadata import metadata_loop

    if opened.options.audit_log:
        linker = Linker(opened.database)
        # Before all other entries. A key file that others may read stops the start.
        await linker.write()
        stack.push_async_callback(linker.stop)
    tasks = await stack.enter_async_context(
        SimpleTaskGroup(cancel=True, cancel_event=cancel_event, taskgroup_name="Lifespan")
    )
    tasks.create_task(metadata_loop())
    await _open_store(tasks)
    graph.patch_packages_distributions()
    await graph.collect_graphs_from_env(True)
    graphs = set(graph.SYSTEM_ASSISTANT_IDS)
    await opened.database.write(lambda conn: retire_system_assistants(conn, graphs))
    if recovered := await recovery.recover():
        logger.warning("Recovered lost runs", action="runs_recovered", run_ids=recovered)
    # Not the start itself, which fails with the cause of an outage.
    with outage.waited_for():
        if opened.options.audit_log:
            repeat = periodic(linker.write, LINK_SECONDS, "Audit chains not linked", "link_failed")
            tasks.create_task(repeat)
        _start_tasks(stack, opened, tasks, crons=crons)


def _start_tasks(stack: AsyncExitStack, opened: Runtime, tasks: Any, *, crons: bool) -> None:
    from langgraph_api import config
    from langgraph_api.metrics_collector import collector_loop

    tasks.create_task(outage.watch(opened.database, opened.bus.followers.wake))
    delivery = Delivery(opened)
    opened.deliver_webhooks = delivery.wake
    # After the queue has stopped, whose last runs may have webhooks.
    stack.push_async_callback(delivery.stop)
    tasks.create_task(delivery.run())
    if config.N_JOBS_PER_WORKER > 0:
        # Not in the group, which would give its workers no grace period.
        work = queue.Queue(opened, config.N_JOBS_PER_WORKER, isolated=config.BG_JOB_ISOLATED_LOOPS)
        task = asyncio.create_task(work.run(), name="queue")
        stack.push_async_callback(_cancel, task)
    # After the queue has its slots. Otherwise the gauges of workers are 0 until the next sample.
    tasks.create_task(collector_loop())
    if crons and config.FF_CRONS_ENABLED:
        from langgraph_api.cron_scheduler import cron_scheduler

        tasks.create_task(cron_scheduler())
    tasks.create_task(_stop_in_time(opened))
    for sweep in _sweeps(opened):
        tasks.create_task(sweep)


def _sweeps(opened: Runtime) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield what cleans up regularly."""
    from langgraph_api import config

    database, settings = opened.database, opened.options
    minutes = float((config.THREAD_TTL or {}).get("sweep_interval_minutes") or 5)
    # Stored results of runs that no client fetched expire with the same sweep.
    rest = min(minutes * 60, 60.0) if opened.bus.shared else minutes * 60
    yield periodic(_sweep_threads, rest, "Thread sweep failed", "thread_sweep_failed", at_once=True)
    events = partial(_sweep_events, opened)
    yield periodic(events, EVENT_SWEEP_SECONDS, "Event sweep failed", "event_sweep_failed")
    if settings.limits.any_has("stored_bytes"):
        count = partial(stored_count.count_due, database, settings)
        failure = "Count of stored bytes failed"
        rest = stored_count.LOOK_SECONDS
        yield periodic(count, rest, failure, "stored_count_failed", at_once=True)
    if settings.audit_retention_days is not None:
        remove = partial(audit_retention.sweep, database, settings.audit_retention_days)
        failure, rest = "Audit retention failed", audit_retention.SWEEP_SECONDS
        yield periodic(remove, rest, failure, "audit_retention_failed", at_once=True)
    if settings.retention.checkpoints:
        thin = partial(thread_retention.sweep, database, settings.retention.checkpoints)
        failure, rest = "Checkpoint sweep failed", thread_retention.PASS_SECONDS
        yield periodic(thin, rest, failure, "checkpoint_sweep_failed", at_once=True)


async def _stop_in_time(opened: Runtime) -> None:
    """End the remaining runs, and then the remaining streams, after the grace period of a stop."""
    stopping = opened.stopping
    if stopping is None:
        return
    while not stopping.has_begun:
        await asyncio.sleep(LOOK_SECONDS)
        if server_stops():
            queue.drain()
    await asyncio.sleep(stopping.seconds_left)
    if opened.queue is not None:
        # A node that ignores its cancellation does not hold up the streams of the others.
        handed_back = asyncio.create_task(opened.queue.hand_back_all(), name="hand-back")
        await asyncio.wait([handed_back], timeout=HAND_BACK_SECONDS)
    stopping.end()


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("Queue failed", action="queue_failed", exc_info=error)


async def _open_store(tasks: Any) -> None:
    """Open the store and make it available to graph factories."""
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


async def _sweep_threads() -> None:
    """Delete expired threads."""
    from langgraph_api import config

    _, swept = await sweep_ttl(limit=(config.THREAD_TTL or {}).get("sweep_limit") or 1000)
    if swept:
        logger.info("Expired threads", action="threads_expired", count=swept)
    await sweep_hook()


async def _sweep_events(opened: Runtime) -> None:
    """Delete events that retention does not keep."""
    from langgraph_api import config

    await retention.sweep(
        opened.database,
        opened.options.retention,
        ttl_seconds=float(config.RESUMABLE_STREAM_TTL_SECONDS),
    )
    await opened.database.write(idempotency.expire)


lifespan.get_last_error = get_last_error  # type: ignore[attr-defined]  # where the API looks
