"""The runtime of a process: one at a time, and none outside its lifespan."""

from typing import Any

import pytest

from langgraph_runtime_sql import database, hooks, process, runtime
from langgraph_runtime_sql.errors import NotStarted
from langgraph_runtime_sql.events.bus import Bus
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.process import Configuration
from langgraph_runtime_sql.queue.queue import drain
from langgraph_runtime_sql.runtime import Runtime
from langgraph_runtime_sql.store.store import SqlStore, Store


def made(**parts: Any) -> Runtime:
    """A runtime without a database."""
    nothing: Any = None
    return Runtime(database=nothing, bus=Bus(nothing, name="test"), store=SqlStore(), **parts)


async def test_outside_the_lifespan_there_is_no_runtime() -> None:
    for use in (runtime.current, Store, database.dependency_checks):
        with pytest.raises(NotStarted):
            use()
    with pytest.raises(NotStarted):
        await database.start_pool()
    with pytest.raises(NotStarted):
        await database.healthcheck()


def test_draining_outside_the_lifespan_does_nothing() -> None:
    """A signal may come before the start, and after the end."""
    drain()


def test_a_runtime_is_the_processs_own_until_its_block_ends() -> None:
    outer, inner = made(), made()
    with process.running(outer):
        with pytest.raises(KeyError), process.running(inner):
            assert runtime.current() is inner
            raise KeyError
        assert runtime.current() is outer
        assert Store() is outer.store
    with pytest.raises(NotStarted):
        runtime.current()


def test_what_the_host_decides_is_kept_for_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.process, "configuration", Configuration())
    options, policy = Options(grace_seconds=3, tenant_key="org"), object()
    process.configure(options, policy)
    assert process.configuration() == Configuration(options=options, hooks=policy)
    # Routes ask for the host's hooks before the start, too.
    assert hooks.configured() is policy
    with process.running(made(options=Options())):
        assert runtime.current().options.tenant_key is None


def test_hooks_of_the_running_platform_are_called() -> None:
    class Policy:
        def before_state_update(self, tx: Any, thread: Any) -> None: ...

    with process.running(made(hooks=Policy())):
        assert hooks.active("before_state_update")
        assert not hooks.active("before_run_create")
    with process.running(made()):
        assert not hooks.active("before_state_update")
