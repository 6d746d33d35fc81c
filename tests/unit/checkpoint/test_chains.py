"""Chains: which version each one is patched against, and what reading it costs."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_runtime_sql import patches
from langgraph_runtime_sql.checkpoint import chains
from langgraph_runtime_sql.checkpoint.chains import Line, Version
from langgraph_runtime_sql.database.schema import packed_id, unpacked_id

MANY = 5000


def stored(count: int, plain: bytes) -> tuple[dict[str, str | None], list[Line]]:
    """Add versions to a line; return the base of each, and the line after each."""
    line: Line = ()
    bases, lines = dict[str, str | None](), []
    for position in range(count):
        version, packed = chains.add(line, str(position), plain)
        assert version.position == position
        line = chains.extended(line, version)
        bases[version.id] = packed.base
        lines.append(line)
    return bases, lines


@pytest.fixture(scope="module")
def many() -> tuple[dict[str, str | None], list[Line]]:
    return stored(MANY, b"a" * chains.LONG)


def chain(bases: dict[str, str | None], position: int) -> list[int]:
    at: str | None = str(position)
    found = []
    while at is not None:
        found.append(int(at))
        at = bases[at]
    return found


def test_each_position_is_patched_against_the_power_of_16_before_it(
    many: tuple[dict[str, str | None], list[Line]],
) -> None:
    bases, _ = many
    expected = {
        1: 0,
        15: 14,
        16: 0,
        17: 16,
        32: 16,
        255: 254,
        256: 0,
        272: 256,
        4096: 0,
        4352: 4096,
    }
    assert {each: bases[str(each)] for each in expected} == {
        each: str(base) for each, base in expected.items()
    }


def test_a_read_follows_few_patches_and_a_writer_remembers_few_versions(
    many: tuple[dict[str, str | None], list[Line]],
) -> None:
    bases, lines = many
    assert max(len(chain(bases, each)) for each in range(MANY)) <= 1 + 15 * 4
    assert max(map(len, lines)) <= 5


def test_the_line_of_a_chain_that_was_read_is_the_one_that_was_written(
    many: tuple[dict[str, str | None], list[Line]],
) -> None:
    bases, lines = many
    for position in random.Random(1).sample(range(MANY), 200):
        read = [Version(str(each), each, b"", 0) for each in chain(bases, position)]
        assert [e.id for e in chains.line_of(read)] == [e.id for e in lines[position]]


def test_a_read_decodes_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MOST_DECODED", 20_000)
    _, lines = stored(300, bytes(4096))
    assert max(line[0].behind for line in lines) <= 20_000
    assert {line[0].behind for line in lines} > {0}


def test_a_line_of_long_versions_takes_a_bounded_number_of_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chains, "MOST_KEPT", 10_000)
    bases, lines = stored(300, bytes(4096))
    assert max(map(len, lines)) == 3
    assert max(len(chain(bases, each)) for each in range(300)) < 300 / 2


def test_what_resembles_nothing_is_stored_whole() -> None:
    rng = random.Random(1)
    line = chains.extended((), Version("0", 0, rng.randbytes(9000), 0))
    _, packed = chains.add(line, "1", rng.randbytes(9000))
    assert (packed.base, packed.suffix) == (None, patches.WHOLE)


@given(st.binary(max_size=5000), st.binary(max_size=5000), st.binary(min_size=1, max_size=50))
def test_patches_give_back_the_bytes_and_notice_another_base(
    data: bytes, base: bytes, more: bytes
) -> None:
    assert patches.expanded(patches.whole(data)) == data
    made = patches.patch(data + base, base)
    assert patches.expanded(made, base) == data + base
    if patches.expanded(patches.patch(base, base), base) == base and len(base) > 64:
        with pytest.raises(ValueError, match="cannot be decompressed"):
            patches.expanded(patches.patch(base, base), more + base[::-1])


@given(st.uuids().map(str) | st.text(max_size=40) | st.uuids().map(lambda each: each.hex))
def test_ids_come_back_unchanged_and_uuids_take_16_bytes(text: str) -> None:
    assert unpacked_id(packed_id(text)) == text


@given(st.uuids().map(str), st.uuids().map(str), st.text(min_size=1), st.text(min_size=1))
def test_ids_sort_as_their_texts(one: str, other: str, text: str, second: str) -> None:
    assert (packed_id(one) < packed_id(other)) == (one < other)
    assert len(packed_id(one)) == 16
    assert (packed_id(text) < packed_id(second)) == (text.encode() < second.encode())
