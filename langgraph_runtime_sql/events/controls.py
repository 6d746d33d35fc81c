"""Controls: requests to stop a run, and wake-ups of queues, for any process."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from langgraph_runtime_sql.events import wire
from langgraph_runtime_sql.events.known_runs import MAX_REMEMBERED
from langgraph_runtime_sql.events.wire import Control
from langgraph_runtime_sql.events.wires import Wires


class Controls:
    """The control messages of one process.

    Args:
        wires: The wires to other processes.
    """

    def __init__(self, wires: Wires) -> None:
        self._wires = wires
        self._lock = threading.Lock()
        self._early: OrderedDict[str, Control] = OrderedDict()
        self._listeners: dict[str, Callable[[Control], None]] = {}
        self._wakers: list[Callable[[], None]] = []

    def send(self, run_id: str, control: Control) -> None:
        """Ask a run's worker in any process to stop. Keep the request until the worker listens."""
        with self._lock:
            listener = self._listeners.get(run_id)
            if listener is None:
                self._early[run_id] = control
                while len(self._early) > MAX_REMEMBERED:
                    self._early.popitem(last=False)
        if listener is not None:
            listener(control)
        else:
            self._wires.tell(wire.control(run_id, control))

    def receive(self, run_id: str, control: Control) -> None:
        """Ask a run's worker to stop, if it is in this process."""
        if (listener := self._listeners.get(run_id)) is not None:
            listener(control)

    def listen(self, run_id: str, listener: Callable[[Control], None]) -> Callable[[], None]:
        """Receive a run's control messages, also an early one. Return a function that stops it."""
        with self._lock:
            self._listeners[run_id] = listener
            early = self._early.pop(run_id, None)
        if early is not None:
            listener(early)
        return lambda: self._stop_listening(run_id, listener)

    def _stop_listening(self, run_id: str, listener: Callable[[Control], None]) -> None:
        with self._lock:
            if self._listeners.get(run_id) is listener:
                del self._listeners[run_id]

    def forget(self, run_id: str) -> None:
        """Forget a request that came too late. Repeatable."""
        with self._lock:
            self._early.pop(run_id, None)

    def on_queued(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake`, from any thread, for each queued run. Return a function that stops it."""
        self._wakers.append(wake)
        return lambda: self._wakers.remove(wake)

    def wake(self) -> None:
        """Make the queue of each process look for runs. Call it from any thread."""
        self.wake_here()
        self._wires.tell(wire.wake())

    def wake_here(self) -> None:
        """Make the queue of this process look for runs. Call it from any thread."""
        for wake in list(self._wakers):
            wake()
