"""Values: write long values as parts, and read them back, inside a transaction."""

from collections.abc import Callable, Iterable
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_runtime_sql.checkpoint import compression
from langgraph_runtime_sql.checkpoint.parts import root, rows, tree
from langgraph_runtime_sql.checkpoint.parts.lists import Encoded, EncodedList
from langgraph_runtime_sql.checkpoint.parts.root import (
    KIND_SUFFIX,
    Place,
    Reference,
    Root,
)
from langgraph_runtime_sql.checkpoint.serialization import SERIALIZED
from langgraph_runtime_sql.database import formats
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.errors import DamagedCheckpoint
from langgraph_runtime_sql.memo import Memo

# Shorter values are stored whole, in bytes.
LONG = 2048
_KIND = "msgpack"

# Bytes of the memo of parts that were read, and what an entry takes beside its content.
_SIZE, _ENTRY = 64 * 2**20, 300
# By thread and id. An id is a hash of the content, so an entry is never outdated. A part that is
# missing or changed in the database is noticed by the processes that do not have it here.
contents: Memo[tuple[str, bytes], bytes] = Memo(_SIZE)

Plain = Callable[[str, bytes], tuple[str, bytes]]
"""Decrypts the type and bytes of a stored value, if they are encrypted."""


class PartsWriter:
    """A serializer of serialized values that stores the parts of long ones.

    Args:
        conn: A transaction that writes.
        thread_id: The thread.
        place: The namespace and id of the checkpoint.
        inner: Finishes what is stored: `SERIALIZED`, or one that encrypts.
        secret: The key of the parts' ids, empty without encryption.
    """

    def __init__(
        self,
        conn: Connection,
        thread_id: str,
        place: tuple[str, str],
        inner: SerializerProtocol,
        secret: bytes = b"",
    ) -> None:
        self._conn = conn
        self._thread_id = thread_id
        self._place = Place(*place)
        self._inner = inner
        self._secret = secret

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = SERIALIZED.dumps_typed(obj)
        value = data if isinstance(data, Encoded) else Encoded(data)
        if kind != _KIND or value.size < LONG or not formats.allowed(self._conn):
            return self._inner.dumps_typed({"typed": (kind, value.whole())})
        items: list[bytes | Reference] = []
        for each in value.cut():
            items += [each] if isinstance(each, bytes) else self._stored(each)
        packed = Root(value.digest(), self._place, items).packed()
        return self._inner.dumps_typed({"typed": (kind + KIND_SUFFIX, packed)})

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise TypeError("Values in parts are read by `PartsReader`")

    def _stored(self, piece: list[bytes] | EncodedList) -> list[Reference]:
        """Store what is new of a piece, and return what the root holds of it."""
        grown: tree.Tree | None
        tail, ends = dict[bytes, bytes](), list[Reference]()
        if isinstance(piece, EncodedList):
            runs = piece.runs
            if not runs[-1].is_closed:
                # The root holds the leaves of the run that still grows, so that no node changes.
                *runs, last = runs
                _, ids = tree.node_of(last, self._secret)
                tail = dict(zip(tree.children(ids), last.leaves(), strict=True))
                ends = [Reference(0, ids)]
            grown = tree.RunTree(runs, self._secret) if runs else None
        else:
            grown = tree.LeafTree(piece, self._secret)
        rows.lock_for_writing(self._conn, self._thread_id)
        self._store(grown, tail)
        return ends if grown is None else [Reference(grown.depth, grown.root), *ends]

    def _store(self, grown: tree.Tree | None, leaves: dict[bytes, bytes]) -> None:
        """Store what is new of a tree, and of further leaves.

        If a part is stored, so is everything under it: parts are stored and deleted that way.
        """
        new: list[tuple[str, bytes, bytes]] = []
        if grown is not None:
            candidates, missing = {grown.root}, set[bytes]()
            # All nodes are looked up together, because on Postgres each query is a round trip.
            nodes = {each for level in grown.levels for each in level}
            known = rows.existing(self._conn, self._thread_id, nodes)
            for level in reversed(grown.levels):
                missing = candidates - known
                new.extend((tree.NODE, each, level[each]) for each in missing)
                candidates = {child for each in missing for child in tree.children(level[each])}
            below = grown.leaves_below(missing)
            leaves = leaves | {each: below[each] for each in candidates}
        absent = leaves.keys() - rows.existing(self._conn, self._thread_id, leaves)
        new.extend((tree.LEAF, each, leaves[each]) for each in absent)
        rows.insert(
            self._conn,
            self._thread_id,
            [
                (id_, *self._inner.dumps_typed({"typed": self._short(kind, data)}))
                for kind, id_, data in new
            ],
        )

    def _short(self, kind: str, data: bytes) -> tuple[str, bytes]:
        # Nodes are hashes, which cannot be compressed.
        smaller = compression.squeezed(data) if kind == tree.LEAF else None
        return (kind, data) if smaller is None else (kind + compression.SUFFIX, smaller)


class PartsReader:
    """Puts values together from their parts. Parts of values that were read are kept.

    Args:
        conn: The transaction.
        thread_id: The thread.
        plain: Decrypts stored bytes.
    """

    def __init__(self, conn: Connection, thread_id: str, plain: Plain) -> None:
        self._conn = conn
        self._thread_id = thread_id
        self._plain = plain
        self._found: dict[bytes, bytes] = {}
        # Those among them that no value has proven yet.
        self._new: dict[bytes, bytes] = {}

    def whole(self, packed: bytes) -> bytes:
        """Return the bytes of a value.

        Args:
            packed: Its root.

        Raises:
            DamagedCheckpoint: a part is missing or changed. The message names the thread and the
                checkpoint that stored the value.
        """
        found = root.unpacked(packed, self._thread_id)
        data = b"".join(
            each if isinstance(each, bytes) else self._joined(each, found) for each in found.items
        )
        if root.digest(data) != found.digest:
            raise DamagedCheckpoint(f"{self._where(found)} is damaged: its parts have other bytes")
        for id_, content in self._new.items():
            contents.put((self._thread_id, id_), content, len(content) + _ENTRY)
        self._new.clear()
        return data

    def missing(self, packed: bytes) -> set[bytes]:
        """Return the ids of a value's parts that are not stored."""
        return set().union(*(level[1] for level in self._levels(packed)))

    def reachable(self, packed: bytes) -> set[bytes]:
        """Return the ids of a value's parts."""
        return set().union(*(level[0] for level in self._levels(packed)))

    def _levels(self, packed: bytes) -> Iterable[tuple[set[bytes], set[bytes]]]:
        """Yield the ids of each level, and those that are not stored."""
        for each in root.unpacked(packed, self._thread_id).items:
            if isinstance(each, bytes):
                continue
            ids = set(tree.children(each.ids))
            for _ in range(each.depth):
                self._load(ids, remembered=False)
                absent = ids - self._found.keys()
                yield ids, absent
                ids = {c for node in ids - absent for c in tree.children(self._found[node])}
            stored = rows.existing(self._conn, self._thread_id, ids - self._found.keys())
            yield ids, ids - stored - self._found.keys()

    def _joined(self, reference: Reference, found: Root) -> bytes:
        ids = tree.children(reference.ids)
        for _ in range(reference.depth):
            ids = [c for content in self._contents(ids, found) for c in tree.children(content)]
        return b"".join(self._contents(ids, found))

    def _contents(self, ids: list[bytes], found: Root) -> list[bytes]:
        self._load(ids)
        absent = [each for each in ids if each not in self._found]
        if absent:
            raise DamagedCheckpoint(
                f"{self._where(found)} is damaged: {len(absent)} of its parts are missing, among "
                f"them {absent[0].hex()}"
            )
        return [self._found[each] for each in ids]

    def _load(self, ids: Iterable[bytes], *, remembered: bool = True) -> None:
        """Read those of `ids` that are not here yet, and that are stored."""
        wanted = {each for each in ids if each not in self._found}
        if remembered:
            known = ((each, contents.get((self._thread_id, each))) for each in wanted)
            self._found.update((id_, content) for id_, content in known if content is not None)
            wanted -= self._found.keys()
        for id_, kind, data in rows.read(self._conn, self._thread_id, wanted):
            self._found[id_] = self._new[id_] = self._long(*self._plain(kind, data))

    def _long(self, kind: str, data: bytes) -> bytes:
        if not kind.endswith(compression.SUFFIX):
            return data
        try:
            return compression.expanded(data)
        except ValueError:
            # Other bytes than the stored ones: the value's hash will not be the root's.
            return b""

    def _where(self, found: Root) -> str:
        ns, checkpoint_id = found.place
        inside = f" in the namespace {ns!r}" if ns else ""
        return f"A value of checkpoint {checkpoint_id}{inside} of thread {self._thread_id}"
