"""Values and levels of JSON are counted before it is parsed, exactly, at whatever place it is cut."""

import asyncio
import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.routes.policy import parse
from tests.support.processes import GRAPHS
from threadhold.config_file import ConfigError
from threadhold.http.json_limits import (
    INLINE_BYTES,
    MAX_DEPTH,
    JsonLimits,
    find_problem,
    measure,
    off_loop,
    problem,
)
from threadhold.platform import LangGraphPlatform

# What confuses a counter that takes strings for structure, or escapes for quotes.
TEXTS = st.text(alphabet='[]{},:"\\ \n\u0000aé😀', max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


def counted(value: Any) -> tuple[int, int]:
    """Values and levels of what a parser has made."""
    if not isinstance(value, dict | list):
        return 1, 0
    inner = [counted(each) for each in (value.values() if isinstance(value, dict) else value)]
    values = 1 + sum(number for number, _ in inner)
    return values, 1 + max((depth for _, depth in inner), default=0)


@given(
    DOCUMENTS,
    st.sampled_from([None, 0, 2]),
    st.booleans(),
    st.integers(1, 40),
)
def test_the_count_is_that_of_a_parser(
    document: Any, indent: int | None, ascii_only: bool, piece_bytes: int
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode()
    assert measure(text, piece_bytes) == counted(document)


@given(DOCUMENTS, st.binary(max_size=30) | TEXTS.map(str.encode), st.integers(1, 40))
def test_what_follows_a_document_lowers_no_count(
    document: Any, rest: bytes, piece_bytes: int
) -> None:
    """A parser reads the document, and makes its values, before it stops at the rest."""
    text = json.dumps(document).encode()
    values, depth = measure(text, piece_bytes)
    more, deeper = measure(text + b" " + rest, piece_bytes)
    assert more >= values
    assert deeper >= depth


@given(DOCUMENTS)
def test_a_document_is_refused_from_one_value_or_level_too_many_on(document: Any) -> None:
    text = json.dumps(document).encode()
    values, depth = counted(document)
    assert problem(text, JsonLimits(values, max(depth, 1))) is None
    if values > 1:
        assert f"too many values: {values} " in str(problem(text, JsonLimits(values - 1)))
    if depth > 1:
        assert f"too deeply: {depth} " in str(problem(text, JsonLimits(values, depth - 1)))


@pytest.mark.parametrize(
    ("text", "values", "depth"),
    [
        (b"", 1, 0),
        (b'{"a": [1, {}], "b": "[[,,"}', 5, 3),
        (b'["\\\\", "\\"", "\\\\\\""]', 4, 1),
        (b"[" * 1000 + b"]" * 1000, 1000, 1000),
        (b"[" + b"[]," * 99_999 + b"[]]", 100_001, 2),
        (b'["' + b",[" * 100_000 + b'"]', 2, 1),
        # What is no JSON: each opens a string that never ends, or ends nothing.
        (b'["' + b'\\"' * 100_000, 2, 1),
        (b"]" * 1000, 1, 0),
    ],
)
def test_counts(text: bytes, values: int, depth: int) -> None:
    assert measure(text) == (values, depth)
    assert measure(bytearray(text)) == (values, depth)


def test_a_refusal_names_the_limit_what_was_found_and_the_setting() -> None:
    many, deep = JsonLimits(values=3, depth=2), b"[[[1]]]"
    assert problem(b"[1,2,3]", many) == (
        "The JSON holds too many values: 4 (limit: 3, set by max_json_nodes)"
    )
    assert problem(deep, JsonLimits(depth=2)) == (
        "The JSON is nested too deeply: 3 levels (limit: 2, set by max_json_depth)"
    )


@pytest.mark.parametrize(("size", "elsewhere"), [(INLINE_BYTES - 1, False), (INLINE_BYTES, True)])
async def test_a_large_document_is_left_to_a_thread(size: int, elsewhere: bool) -> None:
    thread = await off_loop(size, threading.get_ident)
    assert (thread != threading.get_ident()) is elsewhere


async def test_the_event_loop_gets_its_turn_while_large_documents_are_counted() -> None:
    text = b"[" + b"[]," * 350_000 + b"[]]"
    counting = [asyncio.ensure_future(find_problem(text, JsonLimits())) for _ in range(8)]
    turns = 0
    while not all(each.done() for each in counting):
        await asyncio.sleep(0.001)
        turns += 1
    assert {each.result() for each in counting} == {problem(text, JsonLimits())}
    # Of at least 8 documents in two threads; one turn if they were counted on the loop.
    assert turns > 3


@pytest.mark.parametrize("limits", [(0, 1), (1, 0), (1, MAX_DEPTH + 1), (-1, 5)])
def test_a_limit_out_of_range_is_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="max_json_"):
        JsonLimits(*limits)
    nodes, depth = limits
    config = {"graphs": {"echo": f"{GRAPHS}/echo.py:graph"}}
    with pytest.raises(ConfigError, match="max_json_"):
        LangGraphPlatform(config, max_json_nodes=nodes, max_json_depth=depth)


def test_a_body_in_another_encoding_than_it_was_counted_in_is_no_json() -> None:
    assert parse(b"[1]") == [1]
    assert parse("[1]".encode("utf-16")) is None
    assert parse("[1]".encode("utf-16-le")) is None
    assert parse("[1]".encode("utf-32")) is None
