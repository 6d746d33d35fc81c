"""The store through langgraph's own interface, on both databases."""

import asyncio
import contextlib
import random
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
    ensure_embeddings,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from psycopg.conninfo import make_conninfo

from langgraph_runtime_sql import clock, migrations
from langgraph_runtime_sql.database import database
from langgraph_runtime_sql.database.connection import Connection
from langgraph_runtime_sql.process import process
from langgraph_runtime_sql.runtime import current
from langgraph_runtime_sql.store.batch import Batch
from langgraph_runtime_sql.store.index import Index
from langgraph_runtime_sql.store.store import SqlStore, Store, configured
from tests.support import databases
from tests.support.checkpoints import runtime_database

pytestmark = pytest.mark.usefixtures("each_database")


HOSTILE_NAMES = [
    "a.b",
    "'",
    '"',
    "''; DROP TABLE store; --",
    "') OR 1=1 --",
    "$",
    "$.a",
    "a[0]",
    "a]",
    "%",
    "_",
    "*",
    "?",
    "\\",
    "\n",
    "\x00",
    "a\x00b",
    "é",
    "名",
    " ",
    "x" * 100_000,
    "value') = 1 OR json_extract(value, '$.x",
]


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[database.Database]:
    """Open the runtime's database as it is while the platform runs."""
    async with runtime_database(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that sets the clock to minutes after the start."""
    start = datetime.now(UTC)
    minutes = 0.0
    monkeypatch.setattr(clock, "now", lambda: start + timedelta(minutes=minutes))

    def move(to: float) -> None:
        nonlocal minutes
        minutes = to

    return move


@pytest.fixture
def config() -> Callable[[dict[str, Any]], SqlStore]:
    """Makes the store that is asked for, and the runtime's own where one runs."""

    def configure(section: dict[str, Any]) -> SqlStore:
        index = section.get("index")
        if index is not None:
            # The embedding function itself: langgraph_api resolves its name (test_store_api.py).
            index = Index(index, ensure_embeddings(index["embed"]))
        ttl = configured({"ttl": section.get("ttl")}).ttl_config
        made = SqlStore(index=index, ttl=ttl)
        if process.running is not None:
            process.running.store = made
        return made

    return configure


async def keys(found: SqlStore, prefix: tuple[str, ...], **search: Any) -> list[str]:
    return [item.key for item in await found.asearch(prefix, limit=1000, **search)]


async def test_item_reads_back_as_it_was_put(db: database.Database) -> None:
    value = {"a": [1, 2.5, None, True], "b": {"c": "é"}, "": ""}
    await Store().aput(("users", "1"), "prefs", value)
    item = await Store().aget(("users", "1"), "prefs")
    assert item is not None
    assert (item.namespace, item.key, item.value) == (("users", "1"), "prefs", value)
    assert item.created_at == item.updated_at
    assert item.created_at.tzinfo is not None
    assert await Store().aget(("users",), "prefs") is None
    assert await Store().aget(("users", "1"), "other") is None


async def test_overwriting_keeps_the_creation_date(db: database.Database) -> None:
    await Store().aput(("a",), "k", {"v": 1})
    first = await Store().aget(("a",), "k")
    await Store().aput(("a",), "k", {"v": 2})
    second = await Store().aget(("a",), "k")
    assert first is not None and second is not None
    assert second.value == {"v": 2}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at


async def test_deleting_is_repeatable(db: database.Database) -> None:
    await Store().aput(("a",), "k", {})
    await Store().adelete(("a",), "k")
    await Store().adelete(("a",), "k")
    assert await Store().aget(("a",), "k") is None


async def test_uuids_and_sets_are_stored_as_json(
    db: database.Database,
) -> None:
    run_id = UUID(int=7)
    await Store().aput(("a",), "k", {"id": run_id, "tags": {"x"}})
    item = await Store().aget(("a",), "k")
    assert item is not None
    assert item.value == {"id": str(run_id), "tags": ["x"]}
    assert await keys(Store(), ("a",), filter={"id": run_id}) == ["k"]


async def test_too_deeply_nested_value_is_refused(db: database.Database) -> None:
    value: dict[str, Any] = {}
    for _ in range(2000):
        value = {"a": value}
    with pytest.raises(Exception, match="cannot be stored as JSON") as refused:
        await Store().aput(("a",), "k", value)
    assert getattr(refused.value, "status_code", None) == 422


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: repr(name[:20]))
async def test_hostile_keys_and_fields_are_plain_data(db: database.Database, name: str) -> None:
    """CVE-2025-8709, CVE-2025-64104, CVE-2025-67644: a filter key is a name, never SQL."""
    if "\0" in name and databases.kind() == "postgresql":
        with pytest.raises(ValueError, match="cannot be stored"):
            await Store().aput(("a",), name, {})
        return
    await Store().aput(("a",), name, {"f" + name: "yes", "a": {"b": 1}})
    await Store().aput(("a",), "other", {"fother": "yes"})
    item = await Store().aget(("a",), name)
    assert item is not None and item.key == name
    assert await keys(Store(), ("a",), filter={"f" + name: "yes"}) == [name]
    assert await keys(Store(), ("a",), filter={"f" + name: {"$eq": "no"}}) == []
    assert await keys(Store(), ("a",), filter={"f" + name: {"$gt": name}}) in ([], [name])
    await Store().adelete(("a",), name)
    assert await keys(Store(), ("a",)) == ["other"]


async def test_dotted_filter_key_is_one_key(
    db: database.Database,
) -> None:
    stock = InMemoryStore()
    for memory in (Store(), stock):
        await memory.aput(("a",), "nested", {"a": {"b": 1}})
        await memory.aput(("a",), "dotted", {"a.b": 1})
        found = await memory.asearch(("a",), filter={"a.b": 1})
        assert [item.key for item in found] == ["dotted"]


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ("t1", "t10"),
        ("t1", "T1"),
        ("a%", "ab"),
        ("a_", "ab"),
        ("a*", "ab"),
        ("a?", "ab"),
        ("[ab]", "a"),
        ("a", "a-b"),
        ("a", "a b"),
        ("a", "a/b"),
        ("a", "a!"),
        ("%", "x"),
        ("'", "x"),
        ("名", "名前"),
    ],
)
async def test_namespace_prefix_matches_whole_labels(
    db: database.Database, inside: str, outside: str
) -> None:
    """CVE-2026-71433: a search in `("t1",)` must not reach tenant `t10`."""
    await Store().aput((inside,), "own", {})
    await Store().aput((inside, "below"), "below", {})
    await Store().aput((outside,), "foreign", {})
    await Store().aput((outside, "below"), "foreign", {})
    await Store().aput(("before", inside), "foreign", {})
    assert set(await keys(Store(), (inside,))) == {"own", "below"}
    assert await Store().alist_namespaces(prefix=(inside,)) == [(inside,), (inside, "below")]
    assert (inside,) in await Store().alist_namespaces(suffix=(inside,))
    assert (outside,) not in await Store().alist_namespaces(suffix=(inside,))


async def test_label_with_a_period_or_nul_is_refused_in_every_operation(
    db: database.Database,
) -> None:
    for label in ("a.b", "a\x00", ""):
        for op in (
            GetOp((label,), "k"),
            PutOp((label,), "k", {}),
            SearchOp((label,)),
            ListNamespacesOp((MatchCondition("prefix", (label,)),)),
        ):
            with pytest.raises(InvalidNamespaceError):
                await Store().abatch([op])


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({}, {"1", "2", "3"}),
    ({"n": 1}, {"1"}),
    ({"n": {"$eq": 2}}, {"2"}),
    ({"n": {"$ne": 2}}, {"1", "3"}),
    ({"n": {"$gt": 1}}, {"2", "3"}),
    ({"n": {"$gte": 2}}, {"2", "3"}),
    ({"n": {"$lt": 2.5}}, {"1", "2"}),
    ({"n": {"$lte": 1}}, {"1"}),
    ({"n": {"$gt": 1, "$lt": 3}}, {"2"}),
    ({"s": {"$gte": "b"}}, {"2", "3"}),
    ({"s": {"$gt": 0}}, set()),
    ({"n": {"$gt": "0"}}, set()),
    ({"missing": {"$gt": 0}}, set()),
    ({"missing": None}, {"1", "2", "3"}),
    ({"missing": "x"}, set()),
    ({"deep": {"x": 1}}, {"1"}),
    ({"deep": {"x": {"$gt": 1}}}, {"2"}),
    ({"deep": {}}, {"1", "2"}),
    ({"list": ["a", "b"]}, {"1"}),
    ({"list": {"$contains": "a"}}, {"1", "2"}),
    ({"list": {"$contains": ["a", "b"]}}, {"1"}),
    ({"s": {"$contains": "a"}}, set()),
    ({"$or": [{"n": 1}, {"s": "b"}]}, {"1", "2"}),
    ({"$and": [{"n": {"$gt": 1}}, {"s": "b"}]}, {"2"}),
    ({"$and": [{"n": {"$gt": 1}}, {"$or": [{"s": "a"}, {"s": "c"}]}]}, {"3"}),
    ({"$or": [{"n": 1}, {"n": 2}], "s": "b"}, {"2"}),
]


@pytest.mark.parametrize(("filter", "expected"), FILTERS, ids=[str(asked) for asked, _ in FILTERS])
async def test_filter_selects_items(
    db: database.Database, filter: dict[str, Any], expected: set[str]
) -> None:
    await Store().abatch(
        [
            PutOp(("a",), "1", {"n": 1, "s": "a", "deep": {"x": 1}, "list": ["a", "b"]}),
            PutOp(("a",), "2", {"n": 2, "s": "b", "deep": {"x": 2}, "list": ["a"]}),
            PutOp(("a",), "3", {"n": 3, "s": "c", "deep": 5, "list": "ab"}),
        ]
    )
    assert set(await keys(Store(), ("a",), filter=filter)) == expected


def nest(depth: int) -> dict[str, Any]:
    filter: dict[str, Any] = {"n": 1}
    for _ in range(depth):
        filter = {"$and": [filter]}
    return filter


@pytest.mark.parametrize(
    "filter",
    [
        {"n": {"$regex": "x"}},
        {"n": {"$gt": 1, "plain": 2}},
        {"$not": {"n": 1}},
        {"$": None},
        {"$and": []},
        {"$or": [{}]},
        {"$or": {"n": 1}},
        {"$or": "n"},
        {"$and": [{"n": 1}, 5]},
        {"$and": [{"n": {"$where": "1"}}, {"n": 1}]},
        {"$or": [{"n": 1}, {"$nor": [{"n": 2}]}]},
        nest(40),
        {"$or": [{"n": i} for i in range(5000)]},
    ],
    ids=lambda filter: str(filter)[:40],
)
async def test_invalid_filter_is_refused(db: database.Database, filter: dict[str, Any]) -> None:
    """An unknown operator must not match any item, and is answered with 400."""
    await Store().aput(("a",), "k", {"n": 1})
    with pytest.raises(ValueError, match=r"filter|\$and|\$or"):
        await Store().asearch(("a",), filter=filter)


async def test_filter_thousands_of_levels_deep_is_refused(db: database.Database) -> None:
    with pytest.raises(Exception, match=r"JSON|levels"):
        await Store().asearch(("a",), filter=nest(3000))


async def test_pages_are_newest_first_and_complete(db: database.Database) -> None:
    for i in range(25):
        await Store().aput(("a", str(i % 3)), str(i), {"even": i % 2 == 0})
    newest = [str(i) for i in reversed(range(25))]
    for filter, expected in ((None, newest), ({"even": True}, newest[::2])):
        paged = []
        for offset in range(0, 25, 4):
            page = await Store().asearch(("a",), filter=filter, limit=4, offset=offset)
            paged += [item.key for item in page]
        assert paged == expected


@pytest.mark.parametrize(
    "page", [{"limit": -1}, {"offset": -1}, {"limit": 2**63}, {"offset": 2**70}, {"limit": 1.0}]
)
async def test_invalid_limit_or_offset_is_refused(
    db: database.Database, page: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        await Store().asearch(("a",), **page)
    with pytest.raises(ValueError, match="must be a whole number"):
        await Store().alist_namespaces(**page)


async def test_namespace_lists_equal_those_of_the_in_memory_store(
    db: database.Database, rng: random.Random
) -> None:
    stock, ours = InMemoryStore(), Store()
    labels = ["a", "b", "a-b", "ab", "A", "%", "é", "z z"]
    made = {tuple(rng.choices(labels, k=rng.randint(1, 4))) for _ in range(60)}
    await ours.abatch([PutOp(namespace, "k", {}) for namespace in made])
    stock.batch([PutOp(namespace, "k", {}) for namespace in made])
    for _ in range(200):
        choices = {
            "prefix": tuple(rng.choices([*labels, "*"], k=rng.randint(1, 3))),
            "suffix": tuple(rng.choices([*labels, "*"], k=rng.randint(1, 2))),
            "max_depth": rng.randint(1, 4),
            "limit": rng.randint(0, 30),
            "offset": rng.randint(0, 5),
        }
        query = {name: each for name, each in choices.items() if rng.random() < 0.5}
        assert await ours.alist_namespaces(**query) == stock.list_namespaces(**query), query


async def test_filters_select_the_same_items_as_the_in_memory_store(
    db: database.Database, rng: random.Random
) -> None:
    stock, ours = InMemoryStore(), Store()
    names = ["a", "a.b", "'", "x"]
    leaves: list[Any] = [0, 1, 2.5, -3, 10**15]

    def value(depth: int) -> dict[str, Any]:
        return {
            name: value(depth - 1) if depth and rng.random() < 0.3 else rng.choice(leaves)
            for name in names
        }

    def condition(depth: int) -> Any:
        if depth and rng.random() < 0.3:
            return {rng.choice(names): condition(depth - 1)}
        if rng.random() < 0.5:
            return rng.choice([*leaves, None])
        return {rng.choice(["$eq", "$ne"]): rng.choice([*leaves, {"a": 1}, None])}

    puts = [PutOp(("n", str(i % 5)), str(i), value(2)) for i in range(100)]
    await ours.abatch(puts)
    stock.batch(puts)
    for _ in range(200):
        filter = {name: condition(2) for name in rng.sample(names, rng.randint(1, 2))}
        wanted = {item.key for item in stock.search(("n",), filter=filter, limit=1000)}
        assert set(await keys(ours, ("n",), filter=filter)) == wanted, filter


async def test_batch_reads_the_old_state_and_its_last_put_wins(db: database.Database) -> None:
    await Store().aput(("a",), "k", {"v": 0})
    results = await Store().abatch(
        [
            PutOp(("a",), "k", {"v": 1}),
            GetOp(("a",), "k"),
            PutOp(("a",), "k", {"v": 2}),
            SearchOp(("a",)),
            PutOp(("a",), "gone", {"v": 3}),
            PutOp(("a",), "gone", None),
        ]
    )
    assert results[1].value == {"v": 0}
    assert [item.value for item in results[3]] == [{"v": 0}]
    assert [item.value for item in await Store().asearch(("a",))] == [{"v": 2}]


async def test_failed_batch_stores_nothing(db: database.Database) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        await Store().abatch([PutOp(("a",), "k", {}), PutOp(("a",), "\ud800", {})])
    assert await Store().asearch(("a",)) == []


async def test_store_works_synchronously_in_a_thread(db: database.Database) -> None:
    def node() -> Any:
        Store().put(("a",), "k", {"v": 1})
        Store().put(("a",), "gone", {})
        Store().delete(("a",), "gone")
        assert Store().search(("a",))[0].key == "k"
        assert Store().list_namespaces() == [("a",)]
        return Store().get(("a",), "k")

    assert (await asyncio.to_thread(node)).value == {"v": 1}


async def test_synchronous_call_on_an_event_loop_is_refused(db: database.Database) -> None:
    with pytest.raises(asyncio.InvalidStateError, match=r"await store\.aget"):
        Store().get(("a",), "k")


async def test_store_serves_many_event_loops_at_once(db: database.Database) -> None:
    shared = Store()

    async def work(number: int) -> None:
        await asyncio.gather(
            *(shared.aput(("loop", str(number)), str(i), {"i": i}) for i in range(20))
        )
        assert len(await shared.asearch(("loop", str(number)), limit=100)) == 20

    await asyncio.gather(
        *(asyncio.to_thread(lambda n=n: asyncio.run(work(n))) for n in range(3)), work(3)
    )
    assert len(await shared.asearch(("loop",), limit=1000)) == 80
    assert threading.active_count() < 50


@contextlib.contextmanager
def stock_store(path: Path) -> Iterator[BaseStore]:
    """Open langgraph's own store on the same database."""
    if databases.kind() == "postgresql":
        everything = make_conninfo(databases.url(path), options=databases.EVERYTHING)
        with PostgresStore.from_conn_string(everything) as stock:
            yield stock
        return
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as raw:
        yield SqliteStore(raw)


async def make_tables() -> None:
    """Create the tables of the configured index, as the start of a process does."""
    db = current().database
    if databases.kind() == "sqlite":
        await db.write(lambda conn: Store().ensure_schema(conn.raw))
    else:
        await asyncio.to_thread(migrations.migrate, db.url, Store())


def tables(conn: Connection) -> set[str]:
    """Return the names of the tables."""
    statement = (
        "SELECT name FROM sqlite_master"
        if conn.dialect_name == "sqlite"
        else "SELECT table_name FROM information_schema.tables"
    )
    return {name for (name,) in conn.raw.execute(statement).fetchall()}


async def test_items_survive_a_restart_and_langgraphs_store_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "again.db"
    for key in ("first", "second"):
        async with runtime_database(path):
            await Store().aput(("a", "b"), key, {"v": key})
    with stock_store(path) as stock:
        stock.setup()
        found = stock.search(("a",))
        assert [item.value["v"] for item in found] == ["second", "first"]
        assert found[0].created_at.tzinfo is not None
        stock.put(("a", "b"), "third", {"v": "third"}, ttl=5)
    async with runtime_database(path):
        items = await Store().asearch(("a",))
        assert {item.key for item in items} == {"first", "second", "third"}
        assert all(item.created_at.tzinfo is not None for item in items)


# Time to live


async def test_expired_item_is_invisible_before_it_is_swept(
    db: database.Database, at: Callable[[float], None]
) -> None:
    await Store().aput(("a",), "short", {"v": 1}, ttl=10)
    await Store().aput(("b",), "for ever", {"v": 1}, ttl=None)
    assert set(await keys(Store(), ())) == {"short", "for ever"}
    at(10)
    assert await Store().aget(("a",), "short") is None
    assert await keys(Store(), ()) == ["for ever"]
    assert await keys(Store(), (), filter={"v": 1}) == ["for ever"]
    assert await Store().alist_namespaces() == [("b",)]


async def test_item_put_again_after_expiry_is_new(
    db: database.Database, at: Callable[[float], None]
) -> None:
    await Store().aput(("a",), "k", {}, ttl=1)
    at(2)
    await Store().aput(("a",), "k", {})
    item = await Store().aget(("a",), "k")
    assert item is not None and item.created_at == item.updated_at == clock.now()


async def test_sweeping_deletes_only_expired_items(
    db: database.Database, at: Callable[[float], None]
) -> None:
    await Store().abatch([PutOp(("a",), str(i), {}, ttl=1 + i % 2) for i in range(2500)])
    await Store().aput(("a",), "kept", {})
    at(1)
    assert await Store().sweep_ttl() == 1250
    left = await db.read(lambda c: c.raw.execute("SELECT count(*) FROM store").fetchone()[0])
    assert left == 1251
    assert await Store().sweep_ttl() == 0


async def test_sweeper_deletes_expired_items_until_it_is_cancelled(
    db: database.Database, config: Callable[[dict[str, Any]], SqlStore]
) -> None:
    swept = config({"ttl": {"default_ttl": 0.001, "sweep_interval_minutes": 0.001}})
    await swept.aput(("a",), "k", {})
    sweeper = asyncio.create_task(swept.start_ttl_sweeper())
    count = "SELECT count(*) FROM store"
    async with asyncio.timeout(60):
        while await db.read(lambda c: c.raw.execute(count).fetchone()[0]):
            await asyncio.sleep(0.01)
    assert not sweeper.done()
    sweeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sweeper


async def test_default_ttl_applies_to_items_without_their_own(
    db: database.Database,
    at: Callable[[float], None],
    config: Callable[[dict[str, Any]], SqlStore],
) -> None:
    ours = config({"ttl": {"default_ttl": 10, "refresh_on_read": False}})
    await ours.aput(("a",), "default", {})
    await ours.aput(("a",), "own", {}, ttl=20)
    await ours.aput(("a",), "for ever", {}, ttl=None)
    await asyncio.to_thread(lambda: ours.put(("a",), "sync", {}))
    at(9.9)
    assert set(await keys(ours, ("a",))) == {"default", "own", "for ever", "sync"}
    at(10)
    assert set(await keys(ours, ("a",))) == {"own", "for ever"}
    at(20)
    assert await keys(ours, ("a",)) == ["for ever"]


@pytest.mark.parametrize("by_default", [True, False])
async def test_reading_refreshes_the_expiry_if_configured(
    db: database.Database,
    at: Callable[[float], None],
    config: Callable[[dict[str, Any]], SqlStore],
    by_default: bool,
) -> None:
    ours = config({"ttl": {"default_ttl": 10, "refresh_on_read": by_default}})
    refreshed = ["default"] if by_default else []
    for key in ("got", "searched", "left", "default"):
        await ours.aput(("a",), key, {"key": key})
    at(6)
    await ours.aget(("a",), "got", refresh_ttl=True)
    await ours.asearch(("a",), filter={"key": "searched"}, refresh_ttl=True)
    await ours.aget(("a",), "left", refresh_ttl=False)
    await ours.aget(("a",), "default")
    at(12)
    found = await ours.asearch(("a",), refresh_ttl=False)
    assert {item.key for item in found} == {"got", "searched", *refreshed}
    at(16)
    assert await ours.asearch(("a",), refresh_ttl=False) == []


@pytest.mark.only("sqlite")  # Only a file counts its writes.
async def test_reading_without_a_refresh_writes_nothing(db: database.Database) -> None:
    await Store().aput(("a",), "k", {}, ttl=10)
    before = await db.read(lambda c: c.raw.execute("PRAGMA data_version").fetchone()[0])
    await Store().aget(("a",), "k")
    await Store().asearch(("a",))
    assert await db.read(lambda c: c.raw.execute("PRAGMA data_version").fetchone()[0]) == before


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e300, 1e12, True, "5"])
async def test_invalid_time_to_live_is_refused(db: database.Database, ttl: Any) -> None:
    with pytest.raises(ValueError, match="time to live"):
        await Store().aput(("a",), "k", {}, ttl=ttl)


# Vector search

WORDS = ["cat", "dog", "fish"]


def embed(texts: list[str]) -> list[list[float]]:
    """Count words: more occurrences of "cat" bring a text nearer to "cat"."""
    return [[float(text.count(word)) for word in WORDS] for text in texts]


INDEX = {"index": {"dims": 3, "embed": embed, "fields": ["text", "notes[*]"]}}


@pytest.fixture
async def indexed(
    config: Callable[[dict[str, Any]], SqlStore], tmp_path: Path
) -> AsyncIterator[SqlStore]:
    made = config(INDEX)
    async with runtime_database(tmp_path / "vectors.db", store=made):
        yield made


async def scored(found: SqlStore, query: str, **search: Any) -> list[tuple[str, float | None]]:
    items = await found.asearch((), query=query, **search)
    return [(item.key, None if item.score is None else round(item.score, 3)) for item in items]


async def test_search_ranks_by_similarity(indexed: SqlStore) -> None:
    await indexed.aput(("a",), "cats", {"text": "cat cat"})
    await indexed.aput(("a",), "both", {"text": "cat dog"})
    await indexed.aput(("a",), "fish", {"text": "fish"})
    await indexed.aput(("a",), "nothing", {"text": "stone"})
    await indexed.aput(("a",), "unindexed", {"text": "cat"}, index=False)
    assert await scored(indexed, "cat") == [
        ("cats", 1.0),
        ("both", 0.707),
        ("nothing", 0.0),
        ("fish", 0.0),
        ("unindexed", None),
    ]
    assert await scored(indexed, "cat", limit=2, offset=1) == [("both", 0.707), ("nothing", 0.0)]
    assert await scored(indexed, "cat", filter={"text": {"$ne": "cat cat"}}, limit=1) == [
        ("both", 0.707)
    ]


async def test_search_ranks_like_the_in_memory_store(indexed: SqlStore, rng: random.Random) -> None:
    stock = InMemoryStore(index={"dims": 3, "embed": embed, "fields": ["text", "notes[*]"]})
    puts = [
        PutOp(
            ("n", str(i % 3)),
            str(i),
            {"text": " ".join(rng.choices(WORDS, k=9)), "notes": rng.sample(WORDS, 2)},
        )
        for i in range(60)
    ]
    await indexed.abatch(puts)
    for put in puts:
        stock.batch([put])
    for query in ("cat", "dog fish", "cat cat dog"):
        for prefix in (("n",), ("n", "1")):
            ours = await indexed.asearch(prefix, query=query, limit=60)
            theirs = stock.search(prefix, query=query, limit=60)
            # Compare without rounding, because rounding could separate two nearly equal scores.
            expected = {i.key: i.score or 0 for i in theirs}
            assert {i.key: i.score or 0 for i in ours} == pytest.approx(expected, abs=1e-5)
            assert [i.score for i in ours] == sorted((i.score for i in ours), reverse=True)


async def test_replacing_or_deleting_an_item_deletes_its_vectors(indexed: SqlStore) -> None:
    await indexed.aput(("a",), "k", {"text": "cat", "notes": ["cat", "dog"]})
    await indexed.aput(("a",), "k", {"text": "fish"})
    assert await scored(indexed, "cat") == [("k", 0.0)]
    await indexed.aput(("a",), "k", {"text": "cat"}, index=False)
    assert await scored(indexed, "cat") == [("k", None)]
    await indexed.aput(("a",), "k", {"text": "cat"})
    await indexed.adelete(("a",), "k")
    assert await scored(indexed, "cat") == []
    count = "SELECT count(*) FROM store_vectors"
    assert await current().database.read(lambda c: c.raw.execute(count).fetchone()[0]) == 0


async def test_item_may_name_its_own_index_fields(indexed: SqlStore) -> None:
    await indexed.aput(("a",), "k", {"title": {"en": "dog"}, "text": "cat"}, index=["title.en"])
    assert await scored(indexed, "dog") == [("k", 1.0)]
    for path in ("[[[", "{", "a{b", "[*][*]", "*", "$", "." * 1000, "'", "\x00", "{a,{b}}"):
        await indexed.aput(("a",), "k", {"text": "cat"}, index=[path])
        assert [key for key, _ in await scored(indexed, "cat")] == ["k"]


async def test_synchronous_calls_use_the_embedding_model(indexed: SqlStore) -> None:
    def node() -> list[Any]:
        indexed.put(("a",), "k", {"text": "cat"})
        return indexed.search(("a",), query="cat")

    assert [item.score for item in await asyncio.to_thread(node)] == [pytest.approx(1.0)]


async def test_embedding_happens_outside_the_database_thread(
    config: Callable[[dict[str, Any]], SqlStore], db: database.Database
) -> None:
    """A slow model must not delay other writes."""
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(texts: list[str]) -> list[list[float]]:
        asked.set()
        await answer.wait()
        return embed(texts)

    ours = config({"index": {"dims": 3, "embed": slow}})
    await make_tables()
    slow_put = asyncio.create_task(ours.aput(("a",), "slow", {"text": "cat"}))
    await asked.wait()
    async with asyncio.timeout(60):
        await ours.aput(("a",), "fast", {"text": "cat"}, index=False)
    assert await ours.aget(("a",), "slow") is None
    answer.set()
    await slow_put
    assert await ours.aget(("a",), "slow") is not None


async def test_query_without_an_index_lists_items(
    db: database.Database,
) -> None:
    await Store().aput(("a",), "k", {"text": "cat"}, index=["text"])
    assert await scored(Store(), "cat") == [("k", None)]
    assert "store_vectors" not in await db.read(tables)


async def test_outdated_vectors_are_not_found(
    indexed: SqlStore,
) -> None:
    await indexed.aput(("a",), "k", {"text": "cat"})
    await SqlStore().aput(("a",), "k", {"text": "fish"})
    assert await scored(indexed, "cat") == [("k", None)]


async def test_changed_dimensions_are_refused(
    indexed: SqlStore, config: Callable[[dict[str, Any]], SqlStore], tmp_path: Path
) -> None:
    await indexed.aput(("a",), "k", {"text": "cat"})
    config({"index": {"dims": 4, "embed": embed}})
    with pytest.raises(ValueError, match="3 dimensions, but the configured index has 4"):
        await make_tables()
    with pytest.raises(ValueError, match=r"store\.index\.dims requires 4"):
        await Store().aput(("a",), "k", {"text": "cat"})
    with pytest.raises(ValueError, match=r"store\.index\.dims"):
        config({"index": {"embed": embed}})


# Scale


# These are plans of SQLite. Postgres plans by the size of its tables, which are small here.
@pytest.mark.only("sqlite")
@pytest.mark.parametrize(
    "op",
    [
        GetOp(("a", "b"), "k"),
        SearchOp(("a",)),
        SearchOp(("a", "b"), {"v": 1}),
        SearchOp(("a",), query="cat"),
        ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
    ],
    ids=lambda op: type(op).__name__,
)
async def test_reads_use_an_index(indexed: SqlStore, op: Any) -> None:
    """Explain the executed statements: none of them scans a whole table."""
    await indexed.aput(("a", "b"), "k", {"text": "cat"})
    batch = Batch([op], indexed.index, None)
    batch.vectors = await indexed.index.aembed(batch.documents, batch.queries)

    def explain(conn: Any) -> list[str]:
        statements: list[str] = []
        conn.raw.set_trace_callback(statements.append)
        try:
            batch.read(conn)
        finally:
            conn.raw.set_trace_callback(None)
        return [
            row[3]
            for statement in statements
            for row in conn.raw.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]

    steps = await current().database.read(explain)
    assert any("USING" in step and "INDEX" in step for step in steps), steps
    assert not [step for step in steps if step.startswith("SCAN store")], steps


@pytest.mark.only("sqlite")  # SQLite counts steps, so that the test needs no clock.
async def test_items_of_other_namespaces_do_not_slow_reads(
    db: database.Database,
) -> None:
    """Count steps of SQLite's virtual machine, which do not depend on the load."""
    await Store().abatch([PutOp(("own",), str(i), {"i": i}) for i in range(10)])

    async def steps(op: Any) -> int:
        ticks = 0

        def run(conn: Any) -> None:
            def tick() -> None:
                nonlocal ticks
                ticks += 1

            conn.raw.set_progress_handler(tick, 10)
            try:
                Batch([op], None, None).read(conn)
            finally:
                conn.raw.set_progress_handler(None, 0)

        await db.read(run)
        return ticks

    ops = [
        SearchOp(("own",)),
        SearchOp(("own",), {"i": 3}),
        ListNamespacesOp(),
        ListNamespacesOp((MatchCondition("prefix", ("own",)),)),
    ]
    alone = [await steps(op) for op in ops]
    await Store().abatch([PutOp(("own-not", "x"), str(i), {"i": i}) for i in range(5_000)])
    await Store().abatch([PutOp(("zoo", "x"), str(i), {"i": i}) for i in range(5_000)])
    crowded = [await steps(op) for op in ops]
    assert all(after <= before + 20 for before, after in zip(alone, crowded, strict=True)), crowded
