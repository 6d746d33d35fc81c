"""What a project got wrong that only loading its code shows, as one sentence.

`langgraph_api` loads graphs, authentication and the like while the platform starts. Its tracebacks
go through a dozen of its own frames; the sentence names key, file, line and error.
"""

import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.config_file import ConfigError, ConfigFile

# The file of `langgraph_api` that loads an object, and the key of the configuration that names it.
_LOADERS = (
    ("langgraph_api/auth/", "auth", "path"),
    ("langgraph_api/api/__init__.py", "http", "app"),
    ("langgraph_api/store.py", "store", "path"),
    ("langgraph_api/_checkpointer/", "checkpointer", "path"),
)


class _OneSentence(logging.Filter):
    """Logs the message of an expected failure in place of its traceback."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def filter(self, record: logging.LogRecord) -> bool:
        text = str(record.msg)
        if text.startswith("Traceback") and text.rstrip().endswith(self._message):
            record.msg = self._message
        return True


def shorten(error: RuntimeSqlError) -> None:
    """Have uvicorn log one sentence for a failed start, in any host.

    Starlette hands uvicorn the text of the whole traceback, whatever the error.
    """
    logging.getLogger("uvicorn.error").addFilter(_OneSentence(str(error)))


class CannotLoad(ConfigError):
    """An object that the configuration names cannot be loaded; the message says why."""


def explained(error: BaseException, project: ConfigFile) -> CannotLoad | None:
    """Find the sentence for a failed start.

    Args:
        error: What starting raised.
        project: The configuration that was to be served.

    Returns:
        The error to raise in its place; None if loading the project's code is not what failed.
    """
    chain = list(_chain(error))
    named = _named(chain, project)
    if named is None:
        return None
    key, spec = named
    return CannotLoad(f"{project.source}: {key}: {_problem(chain, spec, project)}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it, outermost first."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def _named(chain: list[BaseException], project: ConfigFile) -> tuple[str, str] | None:
    """The key of what was being loaded, and its value such as `/path/graph.py:graph`."""
    for error in chain:
        if type(error).__name__ == "GraphLoadError":
            graph = str(vars(error)["spec"].id)
            return f"graphs.{graph}", _path(project.graphs[graph])
    files = [frame.filename for error in chain for frame in _frames(error)]
    for loader, section, key in _LOADERS:
        spec = project.sections[section].get(key)
        if spec is not None and any(loader in file for file in files):
            return f"{section}.{key}", str(spec)
    return None


def _path(graph: Any) -> str:
    return str(graph["path"] if isinstance(graph, dict) else graph)


def _problem(chain: list[BaseException], spec: str, project: ConfigFile) -> str:
    target, _, name = spec.rpartition(":")
    for error in chain:
        if isinstance(error, SyntaxError):
            return f"{error.filename}, line {error.lineno}: {error.msg}"
        if (where := _place(error, project)) is not None:
            return f"{where}: {type(error).__name__}: {_first_line(error)}"
    root = chain[-1]
    if isinstance(root, ImportError):
        return f"cannot import {target}: {_first_line(root)}"
    if isinstance(root, KeyError | AttributeError):
        return f"{target} has no {name!r}"
    return _first_line(root)


def _place(error: BaseException, project: ConfigFile) -> str | None:
    """The line of the project's own code that raised an error, if one did."""
    frames = [frame for frame in _frames(error) if not frame.filename.startswith("<frozen")]
    if not frames:
        return None
    last = frames[-1]
    file = Path(last.filename)
    inside = any(file.is_relative_to(folder) for folder in project.import_paths)
    # The project's environment may lie in its folder.
    if not inside or "site-packages" in file.parts:
        return None
    return f"{last.filename}, line {last.lineno}"


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
