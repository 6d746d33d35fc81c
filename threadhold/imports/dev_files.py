"""Dev files: what `langgraph dev` keeps in the folder `.langgraph_api`, as pickles."""

import pickle
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import Item as StoreItem

from threadhold.imports.errors import CannotImport
from threadhold.imports.exact import ExactSerializer
from threadhold.imports.sources import Item, Row, Source

FOLDER = ".langgraph_api"
_OPS, _STORE = ".langgraph_ops.pckl", "store.pckl"
# The files of the saver: checkpoints, writes, and values of channels.
_STATES = tuple(f".langgraph_checkpoint.{number}.pckl" for number in (1, 2, 3))
_UNENDED = ("pending", "running")
# What reading a file raises that is cut off, or no pickle.
_MALFORMED = (AttributeError, EOFError, ImportError, IndexError, KeyError, TypeError, ValueError)


def opened(folder: Path) -> AbstractContextManager[Source]:
    """Open the files of a folder, which `langgraph dev` may not be using.

    Raises:
        CannotImport: they are missing, or cannot be read.
    """
    inside = folder / FOLDER
    return nullcontext(DevFiles(inside if inside.is_dir() else folder))


class DevFiles:
    """The files as a `Source`."""

    has_threads = True

    def __init__(self, folder: Path) -> None:
        if not (folder / _OPS).is_file():
            raise CannotImport(
                f"{folder} has no file {_OPS}: `langgraph dev` has stored nothing there"
            )
        self._ops: dict[str, list[dict[str, Any]]] = _read(folder / _OPS)
        self._items: dict[tuple[str, ...], dict[str, Any]] = _read(folder / _STORE)
        self.states = InMemorySaver(serde=ExactSerializer())
        parts = (self.states.storage, self.states.writes, self.states.blobs)
        for part, name in zip(parts, _STATES, strict=True):
            part.update(_read(folder / name))  # type: ignore[attr-defined]  # three dictionaries
        self._paths: dict[str, dict[tuple[str, str, str], str]] = defaultdict(dict)
        for (thread_id, ns, checkpoint_id), writes in self.states.writes.items():
            for task_id, _, _, path in writes.values():
                self._paths[thread_id][ns, checkpoint_id, task_id] = path
        runs = Counter(run["status"] for run in self._ops.get("runs", []))
        unended = sum(runs[status] for status in _UNENDED)
        self.left_out = {"runs that have not ended": unended} if unended else {}

    def assistants(self) -> Iterator[tuple[Row, Sequence[Row]]]:
        """Yield each assistant with its versions."""
        versions: dict[str, list[Row]] = defaultdict(list)
        for each in self._ops.get("assistant_versions", []):
            versions[str(each["assistant_id"])].append(each)
        for each in self._ops.get("assistants", []):
            yield each, versions[str(each["assistant_id"])]

    def threads(self) -> Iterator[Row]:
        """Yield the threads."""
        yield from self._ops.get("threads", [])

    def paths(self, thread_id: str) -> Mapping[tuple[str, str, str], str]:
        """Return the paths of a thread's tasks."""
        return self._paths[thread_id]

    def items(self) -> Iterator[Item]:
        """Yield the items of the store."""
        for namespace, items in self._items.items():
            for key, each in items.items():
                yield Item(tuple(namespace), key, each.value)

    def crons(self) -> Iterator[Row]:
        """Yield the crons."""
        yield from self._ops.get("crons", [])


def _read(path: Path) -> Any:
    """Return the content of a pickle; an empty one if there is none.

    Raises:
        CannotImport: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return _Unpickler(file).load()
    except FileNotFoundError:
        return {}
    except (OSError, pickle.UnpicklingError, *_MALFORMED) as error:
        raise CannotImport(f"{path} cannot be read: {error}") from error


class _Unread:
    """An object of a class that is not read, such as a message in a copy of a thread's values."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> "_Unread":
        return self

    def __setstate__(self, state: Any) -> None:
        pass


def _encoded(text: str, encoding: str) -> bytes:
    # This is how pickle's second protocol has bytes.
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


class _Unpickler(pickle.Unpickler):
    """Reads plain data. It imports no class that a file names: a pickle could run any code."""

    _BUILTINS = frozenset({"bytearray", "bytes", "dict", "frozenset", "list", "set"})
    _PLAIN = frozenset(
        {
            *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
            *(("collections", name) for name in ("defaultdict", "OrderedDict", "deque")),
            ("uuid", "UUID"),
        }
    )
    _OTHERS: Mapping[tuple[str, str], Any] = {
        ("_codecs", "encode"): _encoded,
        ("langgraph.store.base", "Item"): StoreItem,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return what a file names, if it is plain data; otherwise a class that keeps nothing."""
        is_builtin = module in ("builtins", "__builtin__") and name in self._BUILTINS
        if is_builtin or (module, name) in self._PLAIN:
            return super().find_class(module, name)
        return self._OTHERS.get((module, name), _Unread)
