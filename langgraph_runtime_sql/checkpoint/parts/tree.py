"""Tree: leaves under nodes of ids, cut by content, so that an edit changes one path only."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from langgraph_runtime_sql.checkpoint.memo import Memo

ID_SIZE = 16
# A node ends after an id of this remainder, or when it is full.
_FANOUT = 16
_FULL = 4 * _FANOUT
LEAF, NODE = "leaf", "node"
# Bytes of the memo of ids, and what an entry takes beside its leaf.
_SIZE, _ENTRY = 16 * 2**20, 250
_ids: Memo[tuple[bytes, bytes], bytes] = Memo(_SIZE)


@dataclass
class Tree:
    """A tree of parts.

    Attributes:
        depth: The number of levels of nodes above the leaves.
        root: The id of its top.
        leaves: The leaves by id.
        levels: The ids in each node by the node's id, the lowest level first.
    """

    depth: int
    root: bytes
    leaves: dict[bytes, bytes]
    levels: list[dict[bytes, bytes]] = field(default_factory=list)


def grow(leaves: Sequence[bytes], secret: bytes) -> Tree:
    """Build the tree over one or more leaves.

    Args:
        leaves: The bytes of the leaves, in their order.
        secret: The key of the hashes, up to 64 bytes. With one, an id does not tell the content.
    """
    ids = [_identify_leaf(leaf, secret) for leaf in leaves]
    tree = Tree(0, ids[0], dict(zip(ids, leaves, strict=True)))
    while len(ids) > 1:
        level: dict[bytes, bytes] = {}
        above: list[bytes] = []
        start = 0
        for at, each in enumerate(ids, 1):
            # A node has two children or more (the last may have one), so each level is shorter.
            count = at - start
            is_full = count >= _FULL or (count > 1 and each[0] % _FANOUT == 0)
            if is_full or at == len(ids):
                content = b"".join(ids[start:at])
                above.append(identify(NODE, content, secret))
                level[above[-1]] = content
                start = at
        tree.levels.append(level)
        tree.depth += 1
        ids = above
    tree.root = ids[0]
    return tree


def _identify_leaf(leaf: bytes, secret: bytes) -> bytes:
    """Return the id of a leaf. Most leaves of a value were in the value before."""
    found = _ids.get((secret, leaf))
    if found is None:
        found = identify(LEAF, leaf, secret)
        _ids.put((secret, leaf), found, len(leaf) + _ENTRY)
    return found


def children(content: bytes) -> list[bytes]:
    """Return the ids in a node."""
    return [content[at : at + ID_SIZE] for at in range(0, len(content), ID_SIZE)]


def identify(kind: str, content: bytes, secret: bytes) -> bytes:
    """Return the id of a part: a hash of its kind and content."""
    return blake2b(content, digest_size=ID_SIZE, key=secret, person=kind.encode()).digest()
