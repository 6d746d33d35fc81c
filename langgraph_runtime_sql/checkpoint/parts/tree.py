"""Tree: leaves under nodes of ids, cut by content, so that an edit changes one path only."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from langgraph_runtime_sql.checkpoint.parts.lists import Run
from langgraph_runtime_sql.memo import Memo

ID_SIZE = 16
# A node ends after an id of this remainder, or when it is full.
_FANOUT = 16
_FULL = 4 * _FANOUT
LEAF, NODE = "leaf", "node"
# Bytes of the memo of ids, and what an entry takes beside its leaf.
_SIZE, _ENTRY = 16 * 2**20, 250
_ids: Memo[tuple[bytes, bytes], bytes] = Memo(_SIZE)


class Tree:
    """A tree of parts.

    Args:
        ids: The ids of its lowest level.
        secret: The key of the hashes.
        levels: The ids in each node by the node's id, the lowest level first, if `ids` are nodes.

    Attributes:
        depth: The number of levels of nodes above the leaves.
        root: The id of its top.
        levels: As above, with all levels.
    """

    def __init__(
        self, ids: list[bytes], secret: bytes, levels: Sequence[Mapping[bytes, bytes]] = ()
    ) -> None:
        self.levels: list[Mapping[bytes, bytes]] = list(levels)
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
            self.levels.append(level)
            ids = above
        self.depth = len(self.levels)
        self.root = ids[0]

    def leaves_below(self, nodes: Iterable[bytes]) -> Mapping[bytes, bytes]:
        """Return the leaves by id that are in nodes of the lowest level."""
        raise NotImplementedError


class LeafTree(Tree):
    """A tree over one or more leaves.

    Args:
        leaves: The bytes of the leaves, in their order.
        secret: The key of the hashes, up to 64 bytes. With one, an id does not tell the content.
    """

    def __init__(self, leaves: Sequence[bytes], secret: bytes) -> None:
        ids = [_identify_leaf(leaf, secret) for leaf in leaves]
        self.leaves = dict(zip(ids, leaves, strict=True))
        super().__init__(ids, secret)

    def leaves_below(self, nodes: Iterable[bytes]) -> Mapping[bytes, bytes]:
        return self.leaves


class RunTree(Tree):
    """A tree over the runs of a list. Each run is a node of the lowest level.

    Args:
        runs: One or more runs, in their order.
        secret: As in `LeafTree`.
    """

    def __init__(self, runs: Sequence[Run], secret: bytes) -> None:
        ids: list[bytes] = []
        lowest: dict[bytes, bytes] = {}
        self._runs: dict[bytes, Run] = {}
        for run in runs:
            id_, content = node_of(run, secret)
            ids.append(id_)
            lowest[id_] = content
            self._runs[id_] = run
        super().__init__(ids, secret, [lowest])

    def leaves_below(self, nodes: Iterable[bytes]) -> Mapping[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for node in nodes:
            found |= zip(children(self.levels[0][node]), self._runs[node].leaves(), strict=True)
        return found


def node_of(run: Run, secret: bytes) -> tuple[bytes, bytes]:
    """Return the id and the content of a run's node. A run that is used again knows them."""
    if run.node is None or run.node[0] != secret:
        content = b"".join(identify(LEAF, leaf, secret) for leaf in run.leaves())
        run.node = secret, identify(NODE, content, secret), content
    return run.node[1:]


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
