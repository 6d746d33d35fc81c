"""Containment in SQL means exactly the same as `filters.contains`."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, select
from starlette.exceptions import HTTPException

from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.schema import Json
from langgraph_runtime_sql.database.statements import Prepared
from langgraph_runtime_sql.migrations import open_database
from langgraph_runtime_sql.search import filters
from tests.support import databases

pytestmark = pytest.mark.usefixtures("each_database")

SCALARS = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        1.0,
        -0.0,
        0.5,
        2**53,
        1e22,
        "",
        "a",
        "A",
        "1",
        "true",
        "\u00e4",
        "\\",
    ]
)
KEYS = st.sampled_from(["a", "b", "A", "", "$eq", "a.b", "0"])
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)
DOCUMENTS = st.dictionaries(KEYS, ANYTHING, max_size=4)


STATEMENT = Prepared(
    select(
        filters.has(bindparam("document", type_=Json), bindparam("needle", type_=Json)).label(
            "found"
        )
    )
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a document and a needle, which often is exactly or nearly a part of it."""
    document = draw(DOCUMENTS)
    return document, draw(st.one_of(DOCUMENTS, st.just(_part(draw, document))))


def _part(draw: st.DrawFn, whole: Any) -> Any:
    if isinstance(whole, dict):
        kept = [key for key in whole if draw(st.booleans())]
        return {key: _part(draw, whole[key]) for key in kept}
    if isinstance(whole, list):
        return draw(st.sampled_from([whole, whole[::-1], whole[:-1], whole + whole[:1]]))
    return draw(st.one_of(st.just(whole), SCALARS))


@pytest.fixture(scope="module")
async def db(
    each_database: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Database]:
    database = open_database(databases.url(tmp_path_factory.mktemp("containment") / "data.db"))
    await database.start()
    yield database
    await database.stop()


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs())
@example(({"a": 1}, {"a": 1.0}))
@example(({"a": True}, {"a": 1}))
@example(({"a": ["b"]}, {"a": "b"}))
@example(({"a": []}, {"a": {}}))
@example(({"a": {}}, {"a": []}))
@example(({"a": None}, {"a": None}))
@example(({}, {"a": None}))
@example(({"a": [1, 2]}, {"a": [2, 1]}))
@example(({"a": [1, [2, {"b": 3}]]}, {"a": [1, [2, {"b": 3}]]}))
@example(({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}))
@example(({"a": list(range(20))}, {"a": list(range(20))}))
@example(({"a": list(range(20))}, {"a": list(range(19))}))
async def test_containment_in_sql_agrees_with_contains(
    db: Database, pair: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    document, needle = pair
    given = {"document": document, "needle": needle}
    found = await db.read(lambda conn: conn.fetchone(STATEMENT, given))
    assert found is not None
    assert bool(found["found"]) == filters.contains(document, needle)


def test_an_array_contains_its_entries_in_any_order() -> None:
    document = {"a": [1, {"b": 2, "c": [3, 4]}, True]}
    assert filters.contains(document, {"a": [{"c": [4]}, 1]})
    assert not filters.contains({"a": [True]}, {"a": [1]})
    assert not filters.contains(document, {"a": 1})


def test_a_search_compares_few_values_of_arrays() -> None:
    entries = {str(number): number for number in range(2000)}
    assert filters.searchable({"a": [1] * 1000, "b": entries})
    with pytest.raises(HTTPException) as refused:
        filters.searchable({"a": [{"b": [1] * 999}]})
    assert refused.value.status_code == 422
