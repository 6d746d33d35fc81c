"""Values are cut and put into trees so that nothing is lost and edits stay local."""

from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_runtime_sql.checkpoint.parts import cutting, root, tree
from langgraph_runtime_sql.checkpoint.parts.root import Place, Reference, Root
from langgraph_runtime_sql.errors import DamagedCheckpoint

texts = st.text(max_size=30) | st.builds(
    lambda text, n: text * n, st.text(max_size=9), st.integers(0, 9000)
)
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | texts
values = st.recursive(
    plain | st.binary(max_size=3000),
    lambda inner: (
        st.lists(inner, max_size=40)
        | st.dictionaries(st.text(max_size=5), inner, max_size=40)
        | st.builds(
            lambda code, each: ormsgpack.Ext(code, ormsgpack.packb(each)),
            st.integers(0, 127),
            inner.filter(lambda each: not isinstance(each, ormsgpack.Ext)),
        )
    ),
    max_leaves=60,
)


def joined(data: bytes) -> bytes:
    return b"".join(
        each if isinstance(each, bytes) else b"".join(each) for each in cutting.cut(data)
    )


@given(values)
def test_pieces_are_the_value(value: Any) -> None:
    data = ormsgpack.packb(value)
    cutter = cutting._Cutter(data)
    assert cutter.skip(0) == len(data)
    assert joined(data) == data


@given(st.binary(max_size=40_000) | st.builds(lambda a, n: a * n, st.binary(), st.integers(0, 999)))
def test_pieces_of_other_bytes_are_these_bytes(data: bytes) -> None:
    assert joined(data) == data


def parts(value: Any) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for each in cutting.cut(ormsgpack.packb(value)):
        if isinstance(each, list):
            grown = tree.LeafTree(each, b"")
            found |= grown.leaves
            for level in grown.levels:
                found |= level
    return found


def messages(count: int) -> list[Any]:
    return [{"id": str(n), "content": f"{n} " * 200} for n in range(count)]


@pytest.mark.parametrize("count", [500, 5000])
@pytest.mark.parametrize("edit", ["append", "insert", "delete", "replace"])
@pytest.mark.parametrize("frame", [lambda all: all, lambda all: {"a": 1, "values": {"all": all}}])
def test_one_edit_adds_few_parts(count: int, edit: str, frame: Any) -> None:
    before = messages(count)
    after, middle = list(before), count // 2
    new = {"id": "new", "content": "new " * 200}
    match edit:
        case "append":
            after.append(new)
        case "insert":
            after.insert(middle, new)
        case "delete":
            del after[middle]
        case "replace":
            after[middle] = new
    old = parts(frame(before))
    added = {id_: data for id_, data in parts(frame(after)).items() if id_ not in old}
    # A path of the tree: a leaf or two, and on each level a node or two of up to 64 ids.
    assert len(added) <= 10
    assert sum(map(len, added.values())) <= 6000


def test_growth_by_small_values_is_shared_too() -> None:
    before, after = parts(list(range(20_000))), parts(list(range(20_001)))
    assert sum(len(data) for id_, data in after.items() if id_ not in before) < 8000


def test_equal_leaves_make_a_finite_tree() -> None:
    grown = tree.LeafTree([b"same"] * 10_000, b"")
    assert len(grown.leaves) == 1
    assert sum(map(len, grown.levels)) < 100


def test_keyed_ids_do_not_tell_the_content() -> None:
    assert tree.identify(tree.LEAF, b"yes", b"one") != tree.identify(tree.LEAF, b"yes", b"two")
    assert tree.identify(tree.LEAF, b"yes", b"") != tree.identify(tree.NODE, b"yes", b"")


def test_root_keeps_everything() -> None:
    kept = Root(b"d" * 16, Place("ns", "id"), [b"head", Reference(2, b"i" * 16), b"tail"])
    assert root.unpacked(kept.packed(), "thread") == kept


@pytest.mark.parametrize("data", [b"", b"\xc0", ormsgpack.packb([2, b"", ["", ""], []])])
def test_damaged_root_names_the_thread(data: bytes) -> None:
    with pytest.raises(DamagedCheckpoint, match="of thread some-thread is damaged"):
        root.unpacked(data, "some-thread")
