"""Worker: `python -m my_agent.parsing PARENT` parses what its pipe brings, one task after another.

It ends with the server: when the pipe closes, when the kernel says that the server is dead, or when
an alarm rings that the task's time is over.
"""

import ctypes
import os
import pickle
import resource
import signal
import sys
import traceback
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, BinaryIO, get_type_hints

from pydantic import TypeAdapter

from my_agent.parsing import frames
from my_agent.parsing.unreadable import Unreadable

# The first byte of an answer.
READY, VALUE, REASON, MEMORY, FAILURE = b"+", b"v", b"r", b"m", b"f"
LONGEST_TASK = 1 << 31
# Seconds by which the alarm follows the server's own limit.
LATER = 5
# Workers leave the CPU to the server.
_NICENESS = 10
_PR_SET_PDEATHSIG = 1


@cache
def answer_type(function: Any) -> TypeAdapter[Any]:
    """Return the type of a parser's result, which crosses the pipe as JSON.

    Unlike a pickle, JSON from a process that a document has taken over runs no code in the server.
    """
    return TypeAdapter(get_type_hints(function)["return"])


def main() -> None:
    """Serve tasks until the pipe closes."""
    server = int(sys.argv[1])
    # What a library prints must not get into the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _end_with(server)
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    frames.write(answers, READY)
    with suppress(EOFError, BrokenPipeError):
        _serve(sys.stdin.buffer, answers)


def _end_with(server: int) -> None:
    # The server decides when it ends, also if Ctrl-C reaches the whole group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            sys.exit()


def _serve(tasks: BinaryIO, answers: BinaryIO) -> None:
    while True:
        module, name, arguments, seconds, memory = pickle.loads(frames.read(tasks, LONGEST_TASK))
        # Without a handler, the alarm ends the process, also inside of a library's code.
        signal.setitimer(signal.ITIMER_REAL, seconds + LATER)
        if sys.platform == "linux":
            resource.setrlimit(resource.RLIMIT_AS, (memory, resource.RLIM_INFINITY))
        found = _answer(module, name, arguments)
        del arguments
        signal.setitimer(signal.ITIMER_REAL, 0)
        frames.write(answers, *found)


def _answer(module: str, name: str, arguments: tuple[Any, ...]) -> tuple[bytes, bytes]:
    try:
        function = getattr(import_module(module), name)
        return VALUE, answer_type(function).dump_json(function(*arguments))
    except Unreadable as error:
        return REASON, str(error).encode("utf-8", "replace")
    except MemoryError:
        return MEMORY, b""
    except Exception as error:  # noqa: BLE001
        # A parser can raise any exception on damaged input, which must not stop the others' tasks.
        # The message may quote the document, and is no text for a log.
        place = traceback.extract_tb(error.__traceback__)[-1]
        return FAILURE, f"{type(error).__name__} in {place.filename}:{place.lineno}".encode()
