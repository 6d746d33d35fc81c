"""Pipe: run a command and pass on its output, up to a number of bytes.

    python -I -S pipe.py BYTES COMMAND ...

The SDK joins what a server writes until a line ends, however long the line is. With this program
between the two, a server that never ends a line costs a bounded amount of memory.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

_BLOCK = 2**16


def main(most: int, command: Sequence[str]) -> int:
    """Run the command, and return its exit code. Input and errors are the caller's own.

    Args:
        most: bytes of the output after which the command is killed.
        command: program and arguments.
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        try:
            left = most
            while part := os.read(_output(child), min(_BLOCK, left + 1)):
                left -= len(part)
                if left < 0:
                    print(f"{command[0]} wrote more than {most:,} bytes", file=sys.stderr)
                    break
                _write(part)
        except BrokenPipeError:
            # The reader is gone.
            pass
        else:
            if left >= 0:
                return child.wait()
        _kill(child)
        return 1


def _output(child: "subprocess.Popen[bytes]") -> int:
    if child.stdout is None:
        raise RuntimeError("The command has no output")
    return child.stdout.fileno()


def _write(part: bytes) -> None:
    while part:
        part = part[os.write(sys.stdout.fileno(), part) :]


def _kill(child: "subprocess.Popen[bytes]") -> None:
    """Kill the command with all it has started, if the group is this program's own."""
    child.kill()
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
