"""Whatever value a thread's metadata has, the next one can take its place."""

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
def test_a_value_can_be_replaced_and_set_again(http: httpx.Client, value: str) -> None:
    thread = http.post("/threads", json={}).json()["thread_id"]
    for text in (value, '"other"', value, '"last"'):
        answer = http.patch(
            f"/threads/{thread}", content=f'{{"metadata": {{"a": {text}}}}}'.encode()
        )
        assert answer.is_success or (text == value and answer.status_code in (400, 422))
    asked = {"metadata": {"a": "last"}, "ids": [thread]}
    assert len(http.post("/threads/search", json=asked).json()) == 1


@pytest.mark.parametrize("value", ["a\x00b", "line\nbreak", "\u2028", "\x7f", "tab\t"])
def test_characters_that_do_not_print_are_searched_by(http: httpx.Client, value: str) -> None:
    thread = http.post("/threads", json={"metadata": {"a": value}}).json()["thread_id"]
    asked = {"metadata": {"a": value}, "ids": [thread]}
    assert len(http.post("/threads/search", json=asked).json()) == 1
