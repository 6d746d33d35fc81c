"""Reading: a thread's stored checkpoints as the bytes that were put, inside a transaction."""

import json
import struct
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_runtime_sql.checkpoint import chains, lines, rows, sealing
from langgraph_runtime_sql.checkpoint.chains import Line, Packed, Version
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.encryption.keys import TenantKeys
from langgraph_runtime_sql.errors import DamagedCheckpoint

# A value is the length of the metadata's JSON, the JSON, and the checkpoint in msgpack.
_LENGTH = struct.Struct(">I")
KIND = "msgpack"
Key = tuple[str, str]
"""The namespace and id of a checkpoint."""


def packed(metadata: Mapping[str, Any], checkpoint: bytes) -> bytes:
    """Return the value of a checkpoint from its metadata and its serialized rest."""
    about = json.dumps(metadata, separators=(",", ":")).encode()
    return b"".join((_LENGTH.pack(len(about)), about, checkpoint))


def unpacked(value: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the metadata and the serialized checkpoint of a value."""
    end = _LENGTH.size + _LENGTH.unpack_from(value)[0]
    about: dict[str, Any] = json.loads(value[_LENGTH.size : end])
    return about, value[end:]


def loaded(version: Version, serde: SerializerProtocol) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata of a version and its checkpoint, which `serde` reads."""
    about, data = unpacked(version.plain)
    return about, serde.loads_typed((KIND, data))


def packed_of(row: Row) -> Packed:
    """Return how the value of a row is stored."""
    return Packed(row["base_id"], row["type"].removeprefix(KIND), bytes(row["value"]))


class Found(NamedTuple):
    """A stored checkpoint.

    Attributes:
        row: Its columns.
        version: Its value.
        writes: What tasks have written onto it, in their order.
    """

    row: Row
    version: Version
    writes: list[Row]


class Reader:
    """Reads checkpoints of one thread. What it has read lately shortens the next reads.

    Args:
        conn: The transaction.
        thread_id: The thread.
        cache: The keys of the database. Default: those of the running platform.

    Attributes:
        thread_id: The thread.
        opener: Decrypts its values.
    """

    def __init__(self, conn: Connection, thread_id: str, cache: TenantKeys | None = None) -> None:
        self._conn = conn
        self.thread_id = thread_id
        self.opener = sealing.Opener(conn, thread_id, cache)
        self._known: OrderedDict[Key, tuple[Version, str | None]] = OrderedDict()
        self._size = 0
        self._lines: dict[Key, Line] = {}

    def find(self, ns: str, checkpoint_id: str | None) -> Found | None:
        """Return a checkpoint, the newest one of a namespace without an id.

        Raises:
            DamagedCheckpoint: its value cannot be put together.
            KeyErased, CannotDecrypt: as in `sealing.Opener`.
        """
        place = {"thread": self.thread_id, "ns": ns}
        if checkpoint_id is not None:
            place["id"] = checkpoint_id
        is_newest = checkpoint_id is None
        asked = self._conn.prefetch(rows.NEWEST_ROW if is_newest else rows.ROW, place)
        onto = self._conn.prefetch(rows.WRITES_ONTO_NEWEST if is_newest else rows.WRITES, place)
        row = asked.one()
        if row is None:
            return None
        return Found(row, self._newest(ns, row), rows.ordered(onto.all()))

    def read(self, ns: str, checkpoint_id: str) -> Version | None:
        """Return the value of a checkpoint without the writes onto it. Errors: `find`."""
        place = {"thread": self.thread_id, "ns": ns, "id": checkpoint_id}
        row = self._conn.fetchone(rows.ROW, place)
        return None if row is None else self._newest(ns, row)

    def _newest(self, ns: str, row: Row) -> Version:
        """Return the value of a row, which this process may remember."""
        line = lines.remembered(self.thread_id, ns, row["checkpoint_id"], packed_of(row))
        if line is None:
            return self.version(ns, row)
        self._lines[ns, line[0].id] = line
        return line[0]

    def version(self, ns: str, row: Row) -> Version:
        """Return the value of a row.

        Raises:
            DamagedCheckpoint, KeyErased, CannotDecrypt: as in `find`.
        """
        todo, base = self._behind(ns, row)
        for each in reversed(todo):
            base = self._decoded(ns, each, base)
        if base is None:
            raise self._incomplete(ns, row, row)
        return base

    def _behind(self, ns: str, row: Row) -> tuple[list[Row], Version | None]:
        """Return the rows to decode, the last one first, and the known version before them."""
        todo: list[Row] = []
        stored: dict[str, Row] = {}
        at: Row | None = row
        while at is not None:
            if (known := self._known.get((ns, at["checkpoint_id"]))) is not None:
                return todo, known[0]
            todo.append(at)
            base_id = at["base_id"]
            if base_id is None or (ns, base_id) in self._known:
                known = self._known.get((ns, base_id)) if base_id else None
                return todo, known and known[0]
            if base_id not in stored:
                place = {"thread": self.thread_id, "ns": ns, "id": base_id}
                found = self._conn.fetchall(rows.CHAIN, place)
                stored = {each["checkpoint_id"]: each for each in found}
            at = stored.get(base_id)
            if at is None or len(todo) > rows.LONGEST:
                raise self._incomplete(ns, row, todo[-1])
        return todo, None

    def _decoded(self, ns: str, row: Row, base: Version | None) -> Version:
        before = None if base is None else base.plain
        kind, plain = self.opener.plain(row["type"], bytes(row["value"]), before)
        if kind != KIND or len(plain) != row["size"]:
            raise self._incomplete(ns, row, row)
        behind = 0 if base is None else base.behind + len(base.plain)
        version = Version(row["checkpoint_id"], row["position"], plain, behind)
        self._known[ns, version.id] = version, row["base_id"]
        self._size += len(plain)
        while self._size > chains.MOST_DECODED and len(self._known) > 1:
            _, (gone, _) = self._known.popitem(last=False)
            self._size -= len(gone.plain)
        return version

    def _incomplete(self, ns: str, row: Row, at: Row) -> DamagedCheckpoint:
        inside = f" in the namespace {ns!r}" if ns else ""
        what = (
            f"the checkpoint {at['base_id']}, which {at['checkpoint_id']} is patched against, is missing"
            if at["base_id"]
            else "its bytes are not what was stored"
        )
        return DamagedCheckpoint(
            f"Checkpoint {row['checkpoint_id']}{inside} of thread {self.thread_id} is damaged: {what}"
        )

    def line(self, ns: str, checkpoint_id: str) -> Line:
        """Return what the next version after a checkpoint that was read may be patched against."""
        return self._lines.get((ns, checkpoint_id)) or chains.line_of(
            self._chain(ns, checkpoint_id)
        )

    def _chain(self, ns: str, checkpoint_id: str | None) -> Iterator[Version]:
        while checkpoint_id is not None:
            known = self._known.get((ns, checkpoint_id))
            if known is None:
                return
            version, checkpoint_id = known
            yield version

    def line_after(self, ns: str, checkpoint_id: str | None) -> Line:
        """Read a checkpoint, and return its `line`; an empty one if there is none."""
        if checkpoint_id is None or self.read(ns, checkpoint_id) is None:
            return ()
        return self.line(ns, checkpoint_id)
