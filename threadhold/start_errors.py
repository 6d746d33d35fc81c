"""Start errors: report a failure to load the project's code in one sentence.

`langgraph_api` loads graphs, authentication and other objects while the platform starts. Its
tracebacks have a dozen frames of its own; the sentence names key, file, line and error.
"""

import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langgraph_runtime_sql.database.sqlite.damage import described
from langgraph_runtime_sql.errors import DatabaseDamaged, RuntimeSqlError
from threadhold.config_file import ConfigError, ConfigFile

# File of `langgraph_api` that loads an object, and section and key that configure the object.
_LOADERS = (
    ("langgraph_api/auth/", "auth", "path"),
    ("langgraph_api/api/__init__.py", "http", "app"),
    ("langgraph_api/store.py", "store", "path"),
    ("langgraph_api/_checkpointer/", "checkpointer", "path"),
)


class _TracebackFilter(logging.Filter):
    """Replace the traceback of an expected failure with its message."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def filter(self, record: logging.LogRecord) -> bool:
        text = str(record.msg)
        if text.startswith("Traceback") and text.rstrip().endswith(self._message):
            record.msg = self._message
        return True


def shorten(error: RuntimeSqlError) -> None:
    """Make uvicorn log the message of `error` without the traceback that Starlette sends it."""
    logging.getLogger("uvicorn.error").addFilter(_TracebackFilter(str(error)))


def describe(error: RuntimeSqlError) -> RuntimeSqlError:
    """Return an error of the start; one about damage says what `threadhold doctor` says."""
    if isinstance(error, DatabaseDamaged) and isinstance(error.where, Path):
        return DatabaseDamaged(error.where, error.reason, described(error.where))
    return error


class CannotLoad(ConfigError):
    """An object that the configuration names cannot be loaded; the message says why."""


def explain(error: BaseException, project: ConfigFile) -> CannotLoad | None:
    """Explain a failed start.

    Args:
        error: The exception of the start.
        project: The configuration.

    Returns:
        The error to raise instead, or None if the failure is not in loading the project's code.
    """
    chain = list(_chain(error))
    loading = _find_key(chain, project)
    if loading is None:
        return None
    key, spec = loading
    return CannotLoad(f"{project.source}: {key}: {_problem(chain, spec, project)}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, outermost first."""
    current: BaseException | None = error
    while current is not None:
        yield current
        hidden = current.__suppress_context__
        current = current.__cause__ or (None if hidden else current.__context__)


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def _find_key(chain: list[BaseException], project: ConfigFile) -> tuple[str, str] | None:
    """Return the key of the object that was loading, and its value (`/path/graph.py:graph`)."""
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
        if (where := _location(error, project)) is not None:
            return f"{where}: {type(error).__name__}: {_first_line(error)}"
    root = chain[-1]
    if isinstance(root, ImportError):
        return f"cannot import {target}: {_first_line(root)}"
    if isinstance(root, KeyError | AttributeError):
        return f"{target} has no {name!r}"
    return _first_line(root)


def _location(error: BaseException, project: ConfigFile) -> str | None:
    """Return file and line of the project's code that raised an error, else None."""
    frames = [frame for frame in _frames(error) if not frame.filename.startswith("<frozen")]
    if not frames:
        return None
    last = frames[-1]
    file = Path(last.filename)
    inside = any(file.is_relative_to(folder) for folder in project.import_paths)
    # The project's virtual environment may be in its folder.
    if not inside or "site-packages" in file.parts:
        return None
    return f"{last.filename}, line {last.lineno}"


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
