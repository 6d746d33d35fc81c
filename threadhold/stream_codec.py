"""Tuning: two functions on the way of every streamed event, in cheaper forms.

`langgraph_api` encodes each event in an executor thread, which gains nothing
because the encoder holds the interpreter's lock, and waits for each with a
group of two tasks. Here the same is done in the running task. `bench/` shows
the difference in events a second.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def install() -> None:
    """Use the forms below in `langgraph_api.stream`, where it still has those functions."""
    from langgraph_api import stream
    from langgraph_api.serde import json_dumpb

    in_executor: Callable[..., Any] | None = getattr(stream, "run_in_executor", None)
    if in_executor is not None:

        async def run_in_executor(executor: Any, fn: Callable[..., Any], *args: Any) -> Any:
            if fn is json_dumpb:
                return fn(*args)
            return await in_executor(executor, fn, *args)

        stream.run_in_executor = run_in_executor
    if hasattr(stream, "wait_if_not_done"):
        stream.wait_if_not_done = wait_unless_stopped


async def wait_unless_stopped(work: Coroutine[Any, Any, T], stop: Any) -> T:
    """The result of `work`, unless `stop` is set first: then `work` is cancelled.

    Args:
        work: What to wait for.
        stop: An event that is set with the reason, an exception.

    Raises:
        Exception: the reason that `stop` was set with.
    """
    if stop.is_set():
        work.close()
        raise _reason(stop)
    task = asyncio.current_task()
    signal: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    waiting = True

    def cancel(_: object) -> None:
        if waiting and task is not None:
            task.cancel()

    signal.add_done_callback(cancel)
    stop._waiters.append(signal)
    try:
        return await work
    except asyncio.CancelledError as error:
        # langgraph hands over what it still has to finish before it is gone.
        if error.args and asyncio.isfuture(error.args[-1]):
            await error.args[-1]
        if not stop.is_set():
            raise
        if task is not None:
            task.uncancel()
        raise _reason(stop) from None
    finally:
        waiting = False
        stop._waiters.remove(signal)
        signal.cancel()


def _reason(stop: Any) -> BaseException:
    reason = stop._value
    return reason if isinstance(reason, BaseException) else asyncio.CancelledError()
