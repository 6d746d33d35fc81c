"""Parsers that misbehave, for workers; and the workers of a process."""

import os
import re
import subprocess


def waits_forever(text: str) -> bool:
    """Search with a pattern that takes years, and holds the interpreter meanwhile."""
    return re.fullmatch("(a+)+", "a" * 60 + text) is not None


def fills_memory(text: str) -> int:
    """Collect copies of a text until there is no memory."""
    kept = [text]
    while True:
        kept.append(kept[-1] * 2)


def aborts(text: str) -> str:
    """Crash as a library in C does."""
    os.abort()


def fails(text: str) -> str:
    """Raise as a parser with a bug does."""
    raise KeyError(text)


def variables(text: str) -> list[str]:
    """Return the names of the environment's variables."""
    return sorted(os.environ)


def length(text: str) -> int:
    """Return the length of a text."""
    return len(text)


def workers(server: int) -> list[int]:
    """Return the ids of a process's workers that run."""
    shown = subprocess.run(
        ["ps", "-A", "-o", "pid=,state=,args="], capture_output=True, text=True, check=True
    )
    lines = [line.split(None, 2) for line in shown.stdout.splitlines()]
    return [
        int(pid)
        for pid, state, *command in lines
        if not state.startswith("Z") and f"my_agent.parsing {server}" in " ".join(command)
    ]
