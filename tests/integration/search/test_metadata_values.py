"""Any metadata value of a thread can be replaced and searched."""

from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from tests.support.garbage import GARBAGE
from tests.support.served import served


@pytest.fixture(scope="module")
def http(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        served(tmp_path_factory.mktemp("values")) as server,
        closing(httpx.Client(base_url=server.url, timeout=60)) as client,
    ):
        yield client


@pytest.mark.parametrize("value", GARBAGE.values(), ids=GARBAGE.keys())
def test_metadata_value_can_be_replaced_and_set_again(http: httpx.Client, value: str) -> None:
    thread = http.post("/threads", json={}).json()["thread_id"]
    for text in (value, '"other"', value, '"last"'):
        answer = http.patch(
            f"/threads/{thread}", content=f'{{"metadata": {{"a": {text}}}}}'.encode()
        )
        assert answer.is_success or (text == value and answer.status_code in (400, 422))
    asked = {"metadata": {"a": "last"}, "ids": [thread]}
    assert len(http.post("/threads/search", json=asked).json()) == 1


@pytest.mark.parametrize("text", ["a\x00b", r"a\u0000b", "line\nbreak", "\u2028", "\x7f", "tab\t"])
def test_metadata_with_replaced_characters_is_found(http: httpx.Client, text: str) -> None:
    made = http.post("/threads", json={"metadata": {text: text}})
    thread = made.raise_for_status().json()["thread_id"]
    for value in ("other", text, 1):
        answer = http.patch(f"/threads/{thread}", json={"metadata": {text: value}})
        assert answer.is_success, answer.text
        asked = {"metadata": {text: value}, "ids": [thread]}
        assert len(http.post("/threads/search", json=asked).json()) == 1


def test_keys_that_are_stored_equally_keep_the_last_value(http: httpx.Client) -> None:
    metadata = {"a\x00": 1, "a\ufffd": 2}
    made = http.post("/threads", json={"metadata": metadata}).raise_for_status().json()
    assert made["metadata"] == {"a\ufffd": 2}
    asked = {"metadata": {"a\x00": 2}, "ids": [made["thread_id"]]}
    assert len(http.post("/threads/search", json=asked).json()) == 1


@pytest.mark.parametrize("number", ["1e22", "1e308", "18446744073709551616", "-1e19", "-0.0"])
def test_very_large_numbers_can_be_searched(http: httpx.Client, number: str) -> None:
    body = f'{{"metadata": {{"a": {number}}}}}'.encode()
    thread = http.post("/threads", content=body).raise_for_status().json()["thread_id"]
    found = http.post("/threads/search", content=body).raise_for_status().json()
    assert thread in {row["thread_id"] for row in found}
