"""PDF: extract the text of a file in a process of its own, with limits of time and memory.

A small PDF can expand to gigabytes, or keep the parser busy for hours. The parser therefore runs in
a process that is killed at the deadline. It reads the file from standard input, and inherits no
variables: a flaw in the parser must not reveal keys.
"""

import json
import logging
import resource
import subprocess
import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

SECONDS = 30.0
"""Time that a file may take."""
MEMORY = 1 << 30
"""Bytes of memory that a file may take."""
LONGEST_OUTPUT = 100_000_000
"""Bytes of text that are read back."""

_ROOT = str(Path(__file__).parents[3])


class PdfError(Exception):
    """A PDF cannot be read. The message is the reason."""


@dataclass(frozen=True)
class Pdf:
    """The text of a PDF.

    Attributes:
        title: the title in its metadata, or empty.
        pages: the text of each page.
    """

    title: str
    pages: tuple[str, ...]


def read(content: bytes, *, seconds: float = SECONDS, memory: int = MEMORY) -> Pdf:
    """Extract the text of a PDF. Blocks.

    Args:
        content: the bytes of the file.
        seconds: time after which the process is killed.
        memory: bytes of memory that the process may take.

    Raises:
        PdfError: the file is encrypted or damaged, or takes too much time or memory.
    """
    command = [sys.executable, "-m", __name__, str(memory), str(int(seconds) + 1)]
    paths = {"PYTHONPATH": _ROOT, "PATH": ""}
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=seconds, env=paths, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise PdfError(f"it takes more than {seconds:g} seconds to read") from error
    if done.returncode or len(done.stdout) > LONGEST_OUTPUT:
        raise PdfError("it takes too much memory or time to read")
    found = json.loads(done.stdout)
    if "error" in found:
        raise PdfError(found["error"])
    return Pdf(found["title"], tuple(found["pages"]))


def extract(content: bytes) -> dict[str, object]:
    """Return the title and pages, or the error, of a PDF. For the process with the limits."""
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    # pypdf logs a message for each irregularity, and real files have many.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "it is encrypted"}
        pages = [page.extract_text() for page in reader.pages]
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except FileNotDecryptedError:
        return {"error": "it is encrypted"}
    except MemoryError:
        return {"error": "it takes too much memory to read"}
    except Exception as error:  # noqa: BLE001
        # The parser can raise any exception on a damaged file. One bad file must not stop the
        # ingestion.
        return {"error": f"it is damaged ({type(error).__name__})"}
    return {"title": title, "pages": pages}


def main() -> None:
    """Limit this process, read a PDF from standard input, and write its text as JSON."""
    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(json.dumps(extract(sys.stdin.buffer.read())))


if __name__ == "__main__":
    main()
