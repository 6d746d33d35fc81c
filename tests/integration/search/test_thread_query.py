"""Searching threads: every query plan gives the same answer, and a rare label is fast."""

import random
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.database.database import Database
from langgraph_runtime_sql.database.statements import Row
from langgraph_runtime_sql.hooks import Caller
from langgraph_runtime_sql.ops.threads import rows as thread_rows
from langgraph_runtime_sql.search import filters, thread_query
from tests.support.checkpoints import runtime_database

pytestmark = pytest.mark.usefixtures("each_database", "settings")


VALUES: list[Any] = ["a", "b", 1, 1.0, 2, True, False, None, [1], ["a", "b"], {"x": {"y": 1}}, "é"]
KEYS = ["tenant", "user", 'quo"te', "dot.ted", "$dollar", "per%cent", "x" * 300, "nul\x00"]


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    async with runtime_database(tmp_path / "x.db") as found:
        yield found


def _random_metadata(rng: random.Random) -> dict[str, Any]:
    return {key: rng.choice(VALUES) for key in rng.sample(KEYS, rng.randint(0, 4))}


async def _fill(db: Database, rng: random.Random, count: int) -> dict[uuid.UUID, dict[str, Any]]:
    """Insert threads with random metadata and return the stored rows by id."""

    def fn(conn: Connection) -> dict[uuid.UUID, dict[str, Any]]:
        for _ in range(count):
            thread_rows.insert(
                conn,
                uuid.UUID(int=rng.getrandbits(128)),
                _random_metadata(rng),
                Caller(),
                status=rng.choice(["idle", "busy"]),
                values=rng.choice([None, {"n": 1}, {"n": 2, "m": {"k": [1]}}]),
            )
        return {row["thread_id"]: row for row in conn.fetchall(thread_rows.threads.select())}

    return await db.write(fn)


@pytest.mark.parametrize("sparse", [0, 20, 10_000])
async def test_every_plan_finds_the_same_threads_as_a_full_scan(
    db: Database, rng: random.Random, monkeypatch: pytest.MonkeyPatch, sparse: int
) -> None:
    monkeypatch.setattr(thread_query, "SPARSE", sparse)
    stored = await _fill(db, rng, 150)
    for _ in range(60):
        metadata = _random_metadata(rng)
        permitted = rng.choice(
            [
                None,
                {"tenant": rng.choice(VALUES)},
                {"user": {"$eq": rng.choice(VALUES)}},
                {"tenant": {"$contains": "a"}},
                {"$or": [{"tenant": "a"}, {"user": "b"}]},
            ]
        )
        values = rng.choice([None, {"n": 1}, {"m": {"k": [1]}}])
        status = rng.choice([None, "idle"])

        def fn(
            conn: Connection,
            metadata: Any = metadata,
            permitted: Any = permitted,
            values: Any = values,
            status: Any = status,
        ) -> tuple[list[uuid.UUID], int]:
            query = thread_query.plan(conn, metadata, permitted).also(values=values, status=status)
            query = query.sorted_by("created_at", ascending=True)
            rows = conn.fetchall(query.page(), {**query.parameters, "limit": 1000, "start": 0})
            assert set(query.ids(conn)) == {row["thread_id"] for row in rows}
            return [row["thread_id"] for row in rows], conn.scalar(query.count(), query.parameters)

        found, count = await db.read(fn)
        expected = [
            row["thread_id"]
            for row in sorted(stored.values(), key=lambda row: row["created_at"])
            if filters.contains(row["metadata"], filters.json_codec.plain(metadata))
            and filters.allows(permitted, row["metadata"])
            and (values is None or filters.contains(row["values"], values))
            and (status is None or row["status"] == status)
        ]
        assert found == expected
        assert count == len(expected)


@pytest.mark.parametrize("sparse", [0, 10_000])
@pytest.mark.parametrize("metadata", [{}, {"a": 1}])
@pytest.mark.parametrize("sort_by", ["updated_at", "created_at"])
async def test_page_reads_the_asked_columns_only(
    db: Database,
    monkeypatch: pytest.MonkeyPatch,
    sparse: int,
    metadata: dict[str, Any],
    sort_by: str,
) -> None:
    monkeypatch.setattr(thread_query, "SPARSE", sparse)

    def fn(conn: Connection) -> tuple[list[Row], list[Row]]:
        for n in range(9):
            thread_rows.insert(conn, uuid.uuid4(), {"a": n % 2}, Caller(), values={"n": n})
        query = thread_query.plan(conn, metadata, None).sorted_by(sort_by, ascending=True)
        page = {**query.parameters, "limit": 3, "start": 1}
        some = query.only(["status", "metadata", "extracted"])
        return conn.fetchall(query.page(), page), conn.fetchall(some.page(), page)

    whole, some = await db.write(fn)
    assert len(whole) == 3
    assert some == [{"metadata": row["metadata"], "status": row["status"]} for row in whole]


@pytest.mark.parametrize("ascending", [False, True])
async def test_pages_are_in_order_of_the_last_update(
    db: Database, rng: random.Random, ascending: bool
) -> None:
    """Some threads share a period of the labels, and many updates move a thread to another."""
    start_time = datetime(2026, 1, 1, tzinfo=UTC)

    def fn(conn: Connection) -> tuple[list[list[Any]], list[Row]]:
        for _ in range(120):
            metadata = {"a": rng.choice([1, 2]), "b": rng.choice([1, 2, 3])}
            row = thread_rows.insert(conn, uuid.UUID(int=rng.getrandbits(128)), metadata, Caller())
            for _ in range(rng.choice([1, 2])):
                updated_at = start_time + timedelta(minutes=rng.uniform(0, 200))
                row = thread_rows.merge_metadata(conn, row, {}, Caller(), updated_at=updated_at)
        query = thread_query.plan(conn, {"a": 1}, {"b": 2}).sorted_by(None, ascending=ascending)
        asked = [{**query.parameters, "limit": 5, "start": start} for start in range(0, 60, 5)]
        pages = [[row["thread_id"] for row in conn.fetchall(query.page(), p)] for p in asked]
        return pages, conn.fetchall(thread_rows.threads.select())

    pages, stored = await db.write(fn)
    matching = [row for row in stored if row["metadata"] == {"a": 1, "b": 2}]
    matching.sort(key=lambda row: (row["updated_at"], row["thread_id"]), reverse=not ascending)
    expected = [row["thread_id"] for row in matching]
    assert len(expected) > 5
    assert pages == [expected[start : start + 5] for start in range(0, 60, 5)]


@pytest.mark.parametrize("sparse", [0, 10_000])
async def test_pages_have_no_gap_and_no_repeat(
    db: Database, rng: random.Random, monkeypatch: pytest.MonkeyPatch, sparse: int
) -> None:
    monkeypatch.setattr(thread_query, "SPARSE", sparse)

    def fn(conn: Connection) -> tuple[list[Any], list[Any]]:
        for _ in range(50):
            thread_rows.insert(conn, uuid.UUID(int=rng.getrandbits(128)), {"a": 1}, Caller())
        query = thread_query.plan(conn, {"a": 1}, None).sorted_by("status", ascending=False)
        pages = [
            row["thread_id"]
            for start in range(0, 60, 7)
            for row in conn.fetchall(query.page(), {**query.parameters, "limit": 7, "start": start})
        ]
        return pages, query.ids(conn)

    pages, ids = await db.write(fn)
    assert len(pages) == len(set(pages)) == len(ids) == 50
    assert set(pages) == set(ids)


@pytest.mark.only("sqlite")  # Postgres plans by the size of its tables, which `bench/` measures.
async def test_search_by_label_scans_no_table(db: Database, rng: random.Random) -> None:
    def fn(conn: Connection) -> list[str]:
        query = thread_query.plan(conn, {"tenant": "a", "user": "b"}, {"owner": "c"})
        compiled = query.page().compiled(_dialect(conn))
        bound = compiled.bind({**query.parameters, "limit": 10, "start": 0})
        plan = conn.raw.execute(f"EXPLAIN QUERY PLAN {compiled.sql}", bound).fetchall()
        return [str(step[-1]) for step in plan]

    steps = await db.write(fn)
    assert not [step for step in steps if step.startswith("SCAN")], steps


@pytest.mark.only("sqlite")  # As above.
@pytest.mark.parametrize("sparse", [0, 10_000])
async def test_count_by_label_uses_only_its_index(
    db: Database, monkeypatch: pytest.MonkeyPatch, sparse: int
) -> None:
    monkeypatch.setattr(thread_query, "SPARSE", sparse)

    def fn(conn: Connection) -> list[str]:
        query = thread_query.plan(conn, {"tenant": "a"}, None)
        compiled = query.count().compiled(_dialect(conn))
        asked = f"EXPLAIN QUERY PLAN {compiled.sql}"
        return [str(step[-1]) for step in conn.raw.execute(asked, compiled.bind(query.parameters))]

    steps = await db.write(fn)
    assert steps[0].startswith("SEARCH l0 USING COVERING INDEX"), steps
    assert not [step for step in steps if step.startswith("SCAN")], steps


def _dialect(conn: Connection) -> Any:
    return conn._dialect


async def test_search_finds_changed_metadata_and_not_the_old(db: Database) -> None:
    thread_id = uuid.uuid4()

    def fn(conn: Connection) -> list[int]:
        row = thread_rows.insert(conn, thread_id, {"a": 1, "b": "x" * 500}, Caller())
        thread_rows.merge_metadata(conn, row, {"a": 2, "c": None}, Caller())
        wanted = [{"a": 1}, {"a": 2}, {"c": None}, {"b": "x" * 500}, {"b": "x"}]
        return [len(thread_query.plan(conn, each, None).ids(conn)) for each in wanted]

    assert await db.write(fn) == [0, 1, 1, 1, 0]


async def test_search_checks_all_of_many_metadata_entries(db: Database) -> None:
    many = {f"key{number}": number for number in range(40)}
    ids = [uuid.uuid4() for _ in range(2)]

    def fn(conn: Connection) -> list[list[uuid.UUID]]:
        thread_rows.insert(conn, ids[0], many, Caller())
        thread_rows.insert(conn, ids[1], {**many, "key39": "other"}, Caller())
        return [
            thread_query.plan(conn, many, None).ids(conn),
            thread_query.plan(conn, None, many).ids(conn),
            thread_query.plan(conn, {**many, "key39": "other"}, {"key0": 0}).ids(conn),
        ]

    assert await db.write(fn) == [[ids[0]], [ids[0]], [ids[1]]]


async def test_search_accepts_thousands_of_ids(db: Database) -> None:
    ids = [uuid.uuid4() for _ in range(50)]

    def fn(conn: Connection) -> set[uuid.UUID]:
        for each in ids:
            thread_rows.insert(conn, each, {"a": 1}, Caller())
        asked = [*ids[:20], *(uuid.uuid4() for _ in range(5000))]
        return set(thread_query.plan(conn, {"a": 1}, None).also(ids=asked).ids(conn))

    assert await db.write(fn) == set(ids[:20])


async def test_invalid_filter_is_refused_with_500(db: Database) -> None:
    for bad in ({"a": {"$ne": 1}}, {"$nor": []}, {"$or": [{"a": 1}]}, {"$and": [{}, {"a": 1}]}):
        with pytest.raises(filters.HTTPException) as error:
            filters.validate(bad)
        assert error.value.status_code == 500
