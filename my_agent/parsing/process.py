"""Process: one worker, its pipes and its limits."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar, cast

from my_agent.parsing import frames
from my_agent.parsing.unreadable import Unreadable
from my_agent.parsing.worker import FAILURE, MEMORY, READY, REASON, answer_type

T = TypeVar("T")
# Seconds until a worker has started, on a busy machine.
START_SECONDS = 60.0
LONGEST_ANSWER = 200_000_000
"""Bytes of a result that are read back."""
# Tasks after which a worker is replaced: parsers may leak memory.
TASKS = 500
_TOO_MUCH_MEMORY = "it takes too much memory to read"
_ROOT = str(Path(__file__).parents[2])


class Failure(Unreadable):
    """A parser raised an unexpected exception. `place` says which, and where."""

    def __init__(self, place: str) -> None:
        super().__init__(f"it is damaged ({place.partition(' ')[0]})")
        self.place = place


class Process:
    """A worker process.

    It inherits neither variables nor open files: a flaw in a parser must not reveal keys.

    Raises:
        Unreadable: the worker did not start.
    """

    def __init__(self) -> None:
        command = [sys.executable, "-m", "my_agent.parsing", str(os.getpid())]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            env={"PYTHONPATH": _ROOT, "PATH": ""},
        )
        self._tasks = cast(BinaryIO, self._process.stdin)
        self._answers = cast(BinaryIO, self._process.stdout)
        self._left = TASKS
        self._killed = False
        with _Timer(self, START_SECONDS):
            started = self._read() == READY
        if not started:
            self.stop()
            raise Unreadable("its parser did not start: try again")

    @property
    def is_usable(self) -> bool:
        """Whether the process can take another task."""
        return not self._killed and self._left > 0

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def call(
        self, function: Callable[..., T], arguments: tuple[Any, ...], seconds: float, memory: int
    ) -> T:
        """Return the result of a parser. Blocks.

        Args:
            function: A function of a module, whose result has an annotated type that JSON can show.
            arguments: What it is called with.
            seconds: After this time the process is killed.
            memory: Bytes of memory that the process may take. Only Linux has this limit.

        Raises:
            Unreadable: the parser raised it, or exceeded a limit.
        """
        task = pickle.dumps((function.__module__, function.__name__, arguments, seconds, memory))
        self._left -= 1
        with _Timer(self, seconds) as timer:
            answer = self._ask(task)
        if answer is None:
            self.stop()
            late = f"it takes more than {seconds:g} seconds to read"
            raise Unreadable(late if timer.rang else "its parser has crashed")
        kind, body = answer[:1], answer[1:]
        if kind == MEMORY:
            # What the failed task has left behind is unknown.
            self.stop()
            raise Unreadable(_TOO_MUCH_MEMORY)
        if kind == REASON:
            raise Unreadable(body.decode())
        if kind == FAILURE:
            raise Failure(body.decode())
        result: T = answer_type(function).validate_json(body)
        return result

    def stop(self) -> None:
        """Kill the process and wait for its end. Repeatable."""
        self.kill()
        for pipe in (self._tasks, self._answers):
            # A task that was not written whole would fail again.
            with suppress(OSError):
                pipe.close()

    def _ask(self, task: bytes) -> bytes | None:
        """Return the answer; None: the process has ended, or answers too much."""
        try:
            frames.write(self._tasks, task)
        except OSError:
            return None
        return self._read()

    def _read(self) -> bytes | None:
        try:
            return frames.read(self._answers, LONGEST_ANSWER)
        except (EOFError, frames.TooLarge):
            return None

    def kill(self) -> None:
        """Kill the process. A thread that waits for its answer meets the end of the pipe."""
        self._killed = True
        self._process.kill()
        self._process.wait()


class _Timer:
    """Kills a process if the block takes too long."""

    def __init__(self, process: Process, seconds: float) -> None:
        self.rang = False
        self._process = process
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        # A ring that has begun ends before anybody looks.
        self._timer.join()

    def _ring(self) -> None:
        self.rang = True
        self._process.kill()
