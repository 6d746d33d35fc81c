"""What a move to Postgres refuses, what it reports, and how it continues after an interruption."""

import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from langgraph_runtime_sql import migrations
from langgraph_runtime_sql.checkpoint import Checkpointer
from langgraph_runtime_sql.database.schema import PERIOD_SECONDS, packed_id
from langgraph_runtime_sql.database.shared_lock import shared_lock
from langgraph_runtime_sql.database.sqlite.ownership import Ownership
from langgraph_runtime_sql.errors import BadDatabaseUrl, RuntimeSqlError
from langgraph_runtime_sql.store import sqlite_rows
from my_agent.tables import tables
from server.cli import PROGRAM, main
from tests.support import databases
from tests.support.checkpoints import runtime_database
from threadhold.move import (
    MoveFailed,
    MoveFinished,
    MoveRefused,
    Progress,
    Unmovable,
    move,
    mover,
)

pytestmark = pytest.mark.usefixtures("settings")

# Number of threads in the source.
THREADS = 7
NOW = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def filled(settings: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a file with a few rows of each kind, which tests copy."""
    path = tmp_path_factory.mktemp("filled") / "data.db"
    asyncio.run(add_checkpoints(path))
    tables.open(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as raw:
        for number in range(THREADS):
            add_thread(raw, id_of(number), number)
        raw.execute("PRAGMA journal_mode = DELETE")
    return path


def id_of(number: int) -> str:
    return f"{number:08}-0000-4000-8000-000000000000"


def add_thread(raw: sqlite3.Connection, thread: str, number: int) -> None:
    raw.execute(
        "INSERT INTO threads (thread_id, created_at, updated_at, state_updated_at, metadata,"
        " config, status, interrupts) VALUES (?, ?, ?, ?, '{}', '{}', 'idle', '{}')",
        (thread, NOW + number, NOW, NOW),
    )
    raw.execute(
        "INSERT INTO thread_labels (key, value, thread_id, period) VALUES ('number', ?, ?, ?)",
        (str(number), thread, NOW // 1_000_000 // PERIOD_SECONDS),
    )
    raw.commit()


async def add_checkpoints(path: Path) -> None:
    """Store three checkpoints of each thread, the later ones as patches."""
    async with runtime_database(path):
        saver = Checkpointer()
        for number in range(THREADS):
            where: Any = {"configurable": {"thread_id": id_of(number), "checkpoint_ns": ""}}
            messages: list[Any] = []
            for step in range(3):
                messages = [*messages, HumanMessage(f"message {step} " * 300, id=str(step))]
                checkpoint = empty_checkpoint()
                values = {"messages": messages, "step": step, "ratio": step / 3}
                checkpoint["channel_values"] = values
                checkpoint["channel_versions"] = dict.fromkeys(values, f"{step}.5")
                where = await saver.aput(where, checkpoint, {"step": step}, {})
                await saver.aput_writes(where, [("messages", messages[-1])], f"task {step}")


@pytest.fixture
def source(tmp_path: Path, filled: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path / "data.db"))


@pytest.fixture
def target(tmp_path: Path) -> str:
    return databases.server().empty(tmp_path / "target")


def moved(source: Path, target: str, report: Callable[[Progress], None] = lambda _: None) -> Any:
    return move(f"sqlite:///{source}", target, PROGRAM.schemas(), report)


def change(source: Path, *statements: str) -> None:
    with closing(sqlite3.connect(source)) as raw:
        for statement in statements:
            raw.execute(statement)
        raw.commit()


def ask(target: str, statement: str) -> Any:
    with psycopg.connect(target, options=databases.EVERYTHING) as raw:
        return raw.execute(statement.encode()).fetchall()


def has_nothing(target: str) -> bool:
    """Return whether the target has neither rows of a source nor a started move."""
    begun = ask(target, "SELECT to_regclass('moves')")
    there = ask(target, "SELECT to_regclass('threads')") != [(None,)]
    return begun == [(None,)] and not (there and ask(target, "SELECT FROM threads"))


# --- interruptions ---


def test_interrupted_move_continues_where_it_stopped(
    source: Path, target: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mover, "BATCH_ROWS", 2)
    interruptions = 0
    for _ in range(100):
        left = rng.randrange(1, 12)

        def interrupt(progress: Progress) -> None:
            nonlocal left
            if progress.phase == "Moving":
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt

        try:
            result = moved(source, target, interrupt)
        except KeyboardInterrupt:
            interruptions += 1
            continue
        break
    else:
        pytest.fail("it never came to an end")
    assert interruptions > 1
    assert result.rows["threads"] == THREADS
    assert result.rows["thread_checkpoints"] == result.rows["thread_writes"] == 3 * THREADS
    for table, rows in result.rows.items():
        assert ask(target, f"SELECT count(*) FROM {table}") == [(rows,)]


def test_batch_size_is_limited_in_bytes(
    source: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mover, "BATCH_BYTES", 1)
    reported: list[Progress] = []
    rows = sum(moved(source, target, reported.append).rows.values())
    for phase in ("Checking", "Moving", "Comparing"):
        # Each row is a batch of its own, after a first report of zero rows.
        done = [each.done for each in reported if each.phase == phase]
        assert done == list(range(rows + 1)), phase
    assert {each.total for each in reported} == {rows}


def test_finished_move_is_not_repeated(source: Path, target: str) -> None:
    moved(source, target)
    (when,) = ask(target, "SELECT finished_at FROM moves")
    ask(target, "UPDATE threads SET status = 'busy' RETURNING thread_id")
    with pytest.raises(MoveFinished, match=r"moved to .* nothing left to do"):
        moved(source, target)
    assert ask(target, "SELECT finished_at FROM moves") == [when]
    assert ask(target, "SELECT DISTINCT status FROM threads") == [("busy",)]
    change(source, "UPDATE threads SET status = 'error'")
    with pytest.raises(MoveFinished, match="has changed since"):
        moved(source, target)


def stop_in_the_middle(progress: Progress) -> None:
    if progress.phase == "Moving" and progress.done:
        raise KeyboardInterrupt


def test_move_does_not_continue_with_a_changed_file(source: Path, target: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        moved(source, target, stop_in_the_middle)
    change(source, "UPDATE threads SET status = 'error'")
    with pytest.raises(MoveRefused, match="has changed since"):
        moved(source, target)


def test_move_does_not_continue_with_another_file(
    source: Path, target: str, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        moved(source, target, stop_in_the_middle)
    # `threadhold ingest` refuses a half-moved database, too.
    assert "was not finished" in ingest(tmp_path, target)
    other = Path(shutil.copy(source, tmp_path / "other.db"))
    with pytest.raises(MoveRefused, match=f"moved from {source}"):
        moved(other, target)


def test_moved_rows_keep_their_tenant(source: Path, target: str) -> None:
    first, second = id_of(0), id_of(1)
    change(
        source,
        *(
            f"UPDATE {table} SET tenant = '{tenant}' WHERE thread_id = '{thread}'"
            for table in ("threads", "thread_labels")
            for tenant, thread in (("acme", first), ("globex", second))
        ),
        "INSERT INTO store (prefix, key, value) VALUES ('acme.ada', 'a', '{}'), ('globex', 'b', '{}')",
        *(
            "INSERT INTO webhooks (webhook_id, run_id, status, message, attempts, created_at, due_at,"
            f" give_up_at, tenant) VALUES ('{thread}', '{thread}', '{status}', '{{}}', 1, 1, 1, 1,"
            f" '{tenant}')"
            for thread, status, tenant in ((first, "pending", "acme"), (second, "dead", "globex"))
        ),
        *(
            "INSERT INTO effects (effect_id, thread_id, run_id, attempt, token, name, status,"
            f" created_at, updated_at, tenant) VALUES ('{thread}', '{thread}', '{thread}', 1, 't',"
            f" 'pay', 'unknown', 1, 1, '{tenant}')"
            for thread, tenant in ((first, "acme"), (second, "globex"))
        ),
    )
    moved(source, target)
    seen = "-c threadhold.tenant=acme -c threadhold.namespace=acme"
    with psycopg.connect(target, options=seen) as raw:
        for table in ("threads", "thread_labels"):
            found = raw.execute(f"SELECT DISTINCT thread_id::text FROM {table}".encode()).fetchall()
            assert found == [(first,)], table
        for table in ("thread_checkpoints", "thread_writes"):
            found = raw.execute(f"SELECT DISTINCT thread_id FROM {table}".encode()).fetchall()
            assert found == [(packed_id(first),)], table
        assert raw.execute("SELECT key FROM store").fetchall() == [("a",)]
        # Another tenant's webhooks and effects are neither seen nor counted.
        for table, status in (("webhooks", "pending"), ("effects", "unknown")):
            found = raw.execute(f"SELECT run_id::text, status FROM {table}".encode()).fetchall()
            assert found == [(first, status)], table
    with psycopg.connect(target) as raw:
        assert raw.execute("SELECT count(*) FROM threads").fetchall() == [(0,)]
    assert ask(target, "SELECT count(*) FROM webhooks") == [(2,)]


# --- refusals ---


@pytest.mark.parametrize(
    ("source_url", "target_url", "message"),
    [
        ("postgresql://h/a", "postgresql://h/b", "from a SQLite file to Postgres"),
        ("sqlite:///a.db", "sqlite:///b.db", "from a SQLite file to Postgres"),
        ("postgresql://h/a", "sqlite:///b.db", "from a SQLite file to Postgres"),
        ("sqlite:///a.db", "sqlite:///a.db", "the same database"),
        ("sqlite:///nowhere/at-all.db", "postgresql://h/b", "There is no database at"),
    ],
)
def test_wrong_kind_of_database_is_refused(source_url: str, target_url: str, message: str) -> None:
    with pytest.raises(MoveRefused, match=message):
        move(source_url, target_url, PROGRAM.schemas(), lambda _: None)


def test_unknown_database_url_is_refused() -> None:
    with pytest.raises(BadDatabaseUrl):
        move("mysql://h/a", "postgresql://h/b", PROGRAM.schemas(), lambda _: None)


def test_unreachable_target_is_reported(source: Path) -> None:
    with pytest.raises(MoveFailed, match="cannot be reached"):
        moved(source, "postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--from", "sqlite:///a.db"],
        ["--to", "postgresql://h/b"],
        ["--from", "sqlite:///a.db", "--to", "postgresql://h/b", "--database-url", "sqlite:///a"],
    ],
)
def test_from_and_to_must_be_given_together(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, ["migrate", *arguments])
    assert done.exit_code == 2
    assert "both --from and --to" in done.output


def test_file_in_use_by_a_server_is_refused(source: Path, target: str) -> None:
    owner = Ownership(source)
    owner.take()
    try:
        with pytest.raises(MoveRefused, match=f"in use by process {os.getpid()}"):
            moved(source, target)
    finally:
        owner.release()
    assert has_nothing(target)


async def test_target_in_use_by_a_server_is_refused(source: Path, target: str) -> None:
    served = migrations.open_database(target)
    await served.start()
    try:
        with pytest.raises(MoveRefused, match="in use by another process"):
            moved(source, target)
    finally:
        await served.stop()


def ingest(folder: Path, url: str) -> str:
    """What `python -m server ingest` of a document says, which it does not bring in."""
    (folder / "skarra.md").write_text("# Skarra Light\n\nIt has six levels.\n")
    command = ["ingest", str(folder / "skarra.md"), "--database-url", url]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 1, done.output
    return done.output


def test_ingest_is_refused_during_a_move(source: Path, target: str, tmp_path: Path) -> None:
    """New rows would stay behind in the file, or be surplus in the target."""
    message = {}

    def look(progress: Progress) -> None:
        if progress.phase not in message:
            message[progress.phase] = [
                ingest(tmp_path, f"sqlite:///{source}"),
                ingest(tmp_path, target),
            ]

    moved(source, target, look)
    assert len(message) == 3
    assert all("in use by a move" in each for both in message.values() for each in both)
    assert ask(target, "SELECT count(*) FROM chat_passage") == [(0,)]


def test_move_is_refused_during_an_ingest(source: Path, target: str) -> None:
    for url in (f"sqlite:///{source}", target):
        # Two ingests do not block each other.
        with (
            shared_lock(url),
            shared_lock(url),
            pytest.raises(MoveRefused, match="such as `ingest`"),
        ):
            moved(source, target)
        assert has_nothing(target)
    moved(source, target)


def test_file_of_another_program_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "text.db").write_text("This is no database, but it is long enough to look.")
    with pytest.raises(MoveRefused, match="cannot be read"):
        moved(tmp_path / "text.db", target)
    change(tmp_path / "other.db", "CREATE TABLE customers (name TEXT)")
    with pytest.raises(MoveRefused, match="no database of Threadhold"):
        moved(tmp_path / "other.db", target)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE alembic_version SET version_num = '9999'", "newer version"),
        (
            "UPDATE product_version SET version_num = 'chat_9999' WHERE version_num LIKE 'icp%'",
            "newer",
        ),
        ("ALTER TABLE threads ADD COLUMN future TEXT", "newer version .*threads has future"),
        (
            "ALTER TABLE thread_writes DROP COLUMN task_path",
            "older .*thread_writes has no task_path",
        ),
        ("DELETE FROM alembic_version", "older version .*threadhold migrate --database-url"),
        ("DELETE FROM product_version WHERE version_num LIKE 'chat%'", "older version"),
    ],
)
def test_file_of_another_version_is_refused(
    source: Path, target: str, statement: str, message: str
) -> None:
    change(source, statement)
    with pytest.raises(MoveRefused, match=message):
        moved(source, target)
    assert has_nothing(target)


def test_target_with_rows_is_refused(source: Path, target: str) -> None:
    migrations.migrate(target)
    ask(target, "INSERT INTO store (prefix, key, value) VALUES ('a', 'b', '{}') RETURNING key")
    with pytest.raises(MoveRefused, match="table store has rows"):
        moved(source, target)


def test_target_with_foreign_tables_is_refused(source: Path, target: str) -> None:
    with psycopg.connect(target, options=databases.EVERYTHING) as raw:
        raw.execute("CREATE TABLE runs (distance REAL)")
    with pytest.raises(MoveRefused, match=r"another program \(runs\)"):
        moved(source, target)


def test_foreign_tables_of_the_file_are_left_and_named(source: Path, target: str) -> None:
    change(source, "CREATE TABLE customers (name TEXT)")
    assert moved(source, target).unknown == ["customers"]


# --- values that Postgres cannot hold ---


def test_unmovable_values_are_all_named_before_the_move(
    source: Path, target: str, rng: random.Random
) -> None:
    ids = [id_of(number) for number in range(THREADS)]
    long = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(9000))
    version = (
        "INSERT INTO assistants (assistant_id, graph_id, name, config, context, metadata, version,"
        " created_at, updated_at) VALUES (?, 'g', 'n', '{}', '{}', '{}', ?, 1, 1)"
    )
    with closing(sqlite3.connect(source)) as raw:
        raw.execute(version, (ids[0], 2**40))
        raw.execute(
            "UPDATE threads SET metadata = ? WHERE thread_id = ?", ('{"a": "\\u0000"}', ids[0])
        )
        raw.execute("UPDATE threads SET status = char(0) WHERE thread_id = ?", (ids[1],))
        raw.execute("UPDATE threads SET created_at = ? WHERE thread_id = ?", (2**62, ids[2]))
        raw.execute("UPDATE threads SET config = '{' WHERE thread_id = ?", (ids[3],))
        raw.execute(
            "UPDATE threads SET status = CAST(x'ff' AS TEXT) WHERE thread_id = ?", (ids[4],)
        )
        raw.execute("UPDATE threads SET thread_id = 'word' WHERE thread_id = ?", (ids[5],))
        for number, changed in ((6, "value = 'text'"), (5, "checkpoint_ns = char(0)")):
            raw.execute(
                f"UPDATE thread_checkpoints SET {changed} WHERE thread_id = ?",
                (packed_id(ids[number]),),
            )
        item = "INSERT INTO store (prefix, key, value) VALUES (?, ?, ?)"
        raw.execute(item, ("notes", long, "{}"))
        raw.execute(item, ("notes", "a" * 9000, "{}"))
        raw.execute(item, ("notes", "not a number", '{"a": NaN}'))
        raw.commit()
    with pytest.raises(Unmovable) as caught:
        moved(source, target)
    message = str(caught.value)
    for part in (
        f"assistants {ids[0]}: column version has {2**40}",
        f"threads {ids[0]}: column metadata holds the character NUL",
        f"threads {ids[1]}: column status holds the character NUL",
        f"threads {ids[2]}: column created_at holds",
        f"threads {ids[3]}: column config holds invalid JSON",
        f"threads {ids[4]}: column status holds half a character",
        "threads word: column thread_id holds 'word'",
        "belongs to a row of threads that does not exist",
        f"thread_checkpoints {ids[6]}",
        "column value holds 'text', which is text and not bytes",
        f"thread_checkpoints {ids[5]} / \0",
        f"store notes / {long[:192]}...: index row",
        "store notes / not a number: column value holds NaN",
    ):
        assert part in message, (part, message)
    # A long key that compresses well fits into an index of Postgres.
    assert "aaaaaaaaaa" not in message
    assert has_nothing(target)


def test_long_list_of_unmovable_values_is_cut_and_counted(source: Path, target: str) -> None:
    change(source, "UPDATE thread_writes SET channel = char(0)")
    with pytest.raises(Unmovable, match=f"and {3 * THREADS - 20} more"):
        moved(source, target)


# --- comparing ---


@pytest.mark.parametrize(
    ("does", "there"),
    [
        ("new.status := 'lost'; RETURN new;", 7),
        ("IF new.thread_id::text LIKE '00000003%' THEN RETURN NULL; END IF; RETURN new;", 6),
    ],
)
def test_comparison_names_changed_and_missing_rows(
    source: Path, target: str, does: str, there: int
) -> None:
    change(source, "DELETE FROM thread_labels")
    migrations.migrate(target)
    with psycopg.connect(target, options=databases.EVERYTHING) as raw:
        raw.execute(
            f"CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does} END $$".encode()
        )
        raw.execute(
            "CREATE TRIGGER spoil BEFORE INSERT ON threads FOR EACH ROW EXECUTE FUNCTION spoil()"
        )
    with pytest.raises(
        MoveFailed, match=f"threads: 7 rows .* {there} with .*00000003-0000"
    ) as caught:
        moved(source, target)
    assert isinstance(caught.value, RuntimeSqlError)
    assert ask(target, "SELECT finished_at FROM moves") == [(None,)]


def test_sequences_continue_after_the_last_number_in_the_file(source: Path, target: str) -> None:
    thread = "00000001-0000-4000-8000-000000000000"
    change(
        source,
        "INSERT INTO chat_document VALUES ('d', '', 'digest')",
        *(
            "INSERT INTO chat_passage (tenant_id, document_id, number, title, section, text, vector)"
            f" VALUES ('', 'd', {number}, '', '', 'x', x'00')"
            for number in range(5)
        ),
        "DELETE FROM chat_passage WHERE number > 2",
        "INSERT INTO runs (seq, run_id, thread_id, assistant_id, created_at, updated_at, status,"
        f" metadata, kwargs, multitask_strategy) VALUES (41, '{thread}', '{thread}', '{thread}',"
        " 1, 1, 'success', '{}', '{}', 'enqueue')",
    )
    moved(source, target)
    [(passage,)] = ask(
        target, "SELECT nextval(pg_get_serial_sequence('chat_passage', 'passage_id'))"
    )
    # The number of a deleted row is not used again.
    assert passage == 6
    [(seq,)] = ask(target, "SELECT nextval(pg_get_serial_sequence('runs', 'seq'))")
    assert seq == 42


@pytest.mark.parametrize("native", [False, True])
def test_vectors_are_moved(source: Path, tmp_path: Path, native: bool, rng: random.Random) -> None:
    target = databases.server().database(tmp_path / "target")
    if native:
        databases.server().install_vectors(tmp_path / "target")
    with closing(sqlite3.connect(source)) as raw:
        sqlite_rows.ensure_tables(raw, 3)
        for number in range(5):
            vector = np.array([rng.gauss(0, 1) for _ in range(3)], np.float32)
            sqlite_rows.TABLES.put(
                raw,
                ("notes",),
                str(number),
                "{}",
                now="2024-01-01 00:00:00.000001+00:00",
                expires_at=None,
                ttl_minutes=0.5,
                vectors=[("text", vector)],
            )
        raw.commit()
        query = "SELECT prefix, key, embedding FROM store_vectors ORDER BY key"
        wanted = raw.execute(query).fetchall()
    assert moved(source, target).rows["store_vectors"] == 5
    found = ask(target, query.replace("embedding", "embedding::text" if native else "embedding"))
    if native:
        found = [
            (*place, np.array(text.strip("[]").split(","), np.float32).tobytes())
            for *place, text in found
        ]
    assert found == wanted
