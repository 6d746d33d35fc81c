"""Stream codec: cheaper versions of two functions that `langgraph_api` calls for each event.

`langgraph_api` encodes each event in an executor thread, which gains nothing because the encoder
holds the interpreter's lock, and waits for each event with a group of two tasks. Both run in
the current task here. `bench/` measures events per second.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def encoding_here(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Return `run_in_executor`, which encodes JSON in the current task."""
    from langgraph_api.serde import json_dumpb

    async def run_in_executor(
        executor: Any, fn: Callable[..., Any], *args: Any, **options: Any
    ) -> Any:
        if fn is json_dumpb:
            return fn(*args, **options)
        return await stock(executor, fn, *args, **options)

    return run_in_executor


async def wait_unless_stopped(work: Coroutine[Any, Any, T], stop: Any) -> T:
    """Return the result of `work`, or cancel it when `stop` is set.

    Args:
        work: The coroutine to await.
        stop: An event of `langgraph_api` whose value is an exception.

    Raises:
        Exception: the value of `stop`.
    """
    task = asyncio.current_task()
    signal: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    waiting = True

    def cancel(_: object) -> None:
        if waiting and task is not None:
            task.cancel()

    signal.add_done_callback(cancel)
    stop._waiters.append(signal)
    if stop.is_set():
        # The work begins, and is cancelled where it waits first: since Python 3.13, closing the
        # next value of a generator breaks the generator.
        signal.set_result(None)
    try:
        return await work
    except asyncio.CancelledError as error:
        # langgraph passes a future of the work that it must still finish.
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
