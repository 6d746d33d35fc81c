"""Lines: the versions that the next checkpoints may be patched against, kept in memory."""

from collections import OrderedDict
from typing import NamedTuple

from langgraph_runtime_sql.checkpoint.chains import LONG, Line, Packed
from langgraph_runtime_sql.encryption import master
from langgraph_runtime_sql.memo import Memo

# Bytes of the lines that a saver remembers; a graph may have called many subgraphs.
_MOST = 64 * 2**20
# Bytes of the memo, and what an entry takes beside its versions.
_SIZE, _ENTRY = 64 * 2**20, 500


class Lines:
    """The last line of each namespace that a saver has read or written."""

    def __init__(self) -> None:
        self._lines: OrderedDict[tuple[str, str], Line] = OrderedDict()
        self._size = 0

    def keep(self, thread_id: str, ns: str, line: Line) -> None:
        """Remember a line."""
        if line:
            self._size += _size(line) - _size(self._lines.pop((thread_id, ns), ()))
            self._lines[thread_id, ns] = line
            while self._size > _MOST and len(self._lines) > 1:
                self._size -= _size(self._lines.popitem(last=False)[1])

    def after(self, thread_id: str, ns: str, checkpoint_id: str | None) -> Line | None:
        """Return the line that ends at a checkpoint, or None if it is not known."""
        if checkpoint_id is None:
            return ()
        line = self._lines.get((thread_id, ns))
        return line if line and line[0].id == checkpoint_id else None


def _size(line: Line) -> int:
    return sum(len(each.plain) for each in line)


class _Newest(NamedTuple):
    line: Line
    packed: Packed


# By thread and namespace. An entry says what the row had: another row is another version.
_newest: Memo[tuple[str, str], _Newest] = Memo(_SIZE)


def remember(thread_id: str, ns: str, line: Line, packed: Packed) -> None:
    """Remember the newest line of a namespace for the next run, with how its last version is stored.

    Short ones are read as fast, and nothing that is encrypted stays in memory after its key was erased.
    """
    if line and len(line[0].plain) >= LONG and not master.active():
        size = _size(line) + len(packed.data) + _ENTRY
        _newest.put((thread_id, ns), _Newest(line, packed), size)


def remembered(thread_id: str, ns: str, checkpoint_id: str, packed: Packed) -> Line | None:
    """Return the line that ends at a checkpoint, if it is remembered and stored in this way."""
    found = _newest.get((thread_id, ns))
    if found is None or master.active() or found.packed != packed:
        return None
    return found.line if found.line[0].id == checkpoint_id else None


def forget() -> None:
    """Forget the lines of all threads, as another process would."""
    _newest.clear()
