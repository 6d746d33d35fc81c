"""The canonical form in which rows of two databases are compared."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadhold.move.canonical import Checksum, Json, Unstorable, check_json, digest, loads

documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(documents)
def test_digest_does_not_depend_on_the_spelling(document: Any) -> None:
    plain = Json(json.dumps(document))
    other = Json(json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True))
    assert digest([plain]) == digest([other])


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("100", "1e2"),
        ("100", "100.0"),
        ("10000000000000000000000", "1e+22"),
        ("0.000001", "1E-6"),
        ("-0.0", "0"),
        ('{"a": 1, "b": 2}', '{"b": 2.0, "a": 1}'),
        ('"\\u00e9"', '"é"'),
    ],
)
def test_equal_values_have_equal_digests(here: str, there: str) -> None:
    assert digest([Json(here)]) == digest([Json(there)])


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (Json("1"), Json('"1"')),
        (Json("9007199254740993"), Json("9007199254740992")),
        (Json("0.1"), Json("0.10000000000000001")),
        (Json("[1, 2]"), Json("[2, 1]")),
        (Json("null"), None),
        (Json("true"), Json("1")),
        ("a", b"a"),
        ("", None),
        (1, "1"),
        (0.5, "0.5"),
    ],
)
def test_different_values_have_different_digests(here: Any, there: Any) -> None:
    assert digest([here]) != digest([there])


def test_digest_depends_on_where_a_value_ends() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["a", None]) != digest(["a"])


def test_equal_driver_values_have_equal_digests() -> None:
    time = datetime(2024, 1, 1, 12, tzinfo=UTC)
    in_singapore = time.astimezone(timezone(timedelta(hours=8)))
    assert digest([time]) == digest([in_singapore])
    assert digest([time]) != digest([time + timedelta(microseconds=1)])
    assert digest([True, 2, UUID(int=1)]) == digest([1, 2.0, UUID(int=1)])


@pytest.mark.parametrize("document", ["{", "NaN", "[Infinity]", "1e99999", "", "[" * 100_000])
def test_invalid_json_is_refused(document: str) -> None:
    with pytest.raises(Unstorable):
        loads(document)


@pytest.mark.parametrize("document", ['"\\u0000"', '{"a\\u0000": 1}', '[["\\ud800"]]'])
def test_characters_that_postgres_cannot_store_are_refused(document: str) -> None:
    with pytest.raises(Unstorable):
        check_json(loads(document))
    check_json(loads(document.replace("\\u", "\\\\u")))


@given(st.lists(st.binary(min_size=16, max_size=16)), st.randoms())
def test_checksum_does_not_depend_on_the_order(digests: list[bytes], random: Any) -> None:
    def summed(each: list[bytes]) -> tuple[int, str]:
        checksum = Checksum()
        for one in each:
            checksum.add(one)
        return checksum.rows, str(checksum)

    shuffled = random.sample(digests, len(digests))
    assert summed(digests) == summed(shuffled)
    if digests:
        assert summed(digests) != summed(digests[1:])
