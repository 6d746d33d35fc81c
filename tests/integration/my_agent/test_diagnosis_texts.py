"""Texts of the diagnosis in both databases: whole or absent, immutable, and read by offset, line and word."""

import json
import random
from collections.abc import Iterable
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, text
from sqlalchemy.exc import DBAPIError

from my_agent.diagnosis.reading.digest import Digest, Group, Place
from my_agent.diagnosis.record import log, texts
from my_agent.diagnosis.record.events import dumps
from my_agent.diagnosis.record.tables import events as table
from tests.support.diagnosis import chained, note
from tests.support.processes import ROOT
from tests.support.products import engine
from threadhold.tables import Engine

pytestmark = pytest.mark.usefixtures("each_database")

TENANT = "acme"
# More than three pieces, with a line that is longer than one, and lines of all lengths.
RANDOM = random.Random(3)
LINES = [
    *(f"{number} {'ä' * RANDOM.randrange(40)} common" for number in range(20_000)),
    "begin " + "x" * (texts.PIECE + 10) + " needle end",
    *(f"{number} after\r" for number in range(1000)),
    "İstanbul NEEDLE here",
    "the last line",
]
LONG = "\n".join(LINES)


@pytest.fixture(scope="module")
def store(product_database: str) -> Engine:
    return engine()


@pytest.fixture(scope="module")
def long(store: Engine) -> str:
    """The session of the long text."""
    with store.writing(TENANT) as connection:
        texts.write(connection, TENANT, "long", "s1", LONG)
    return "long"


def write(store: Engine, session: str, parts: str | Iterable[str], source: str = "s1") -> None:
    with store.writing(TENANT) as connection:
        texts.write(connection, TENANT, session, source, parts)


def whole(store: Engine, session: str, source: str = "s1", tenant: str = TENANT) -> str:
    with store.reading(tenant) as connection:
        return "".join(texts.stream(connection, tenant, session, source))


def rows(store: Engine, session: str) -> int:
    with store.reading(TENANT) as connection:
        query = text(
            "SELECT count(*) FROM diagnosis_texts WHERE session_id = :s AND tenant_id = 'acme'"
        )
        return int(connection.execute(query, {"s": session}).scalar_one())


# --- what the database refuses -----------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE diagnosis_texts SET text = 'other' WHERE session_id = :s",
        "UPDATE diagnosis_texts SET source_id = 's2' WHERE session_id = :s",
        "DELETE FROM diagnosis_texts WHERE session_id = :s",
        (
            "INSERT INTO diagnosis_texts SELECT tenant_id, session_id, source_id, 7, start, chars, line, text"
            " FROM diagnosis_texts WHERE session_id = :s"
        ),
        (
            "INSERT INTO diagnosis_texts SELECT tenant_id, session_id, source_id, 1, 99, chars, line, text"
            " FROM diagnosis_texts WHERE session_id = :s"
        ),
        (
            "INSERT INTO diagnosis_texts SELECT tenant_id, session_id, source_id, 0, 0, 5, 0, 'other'"
            " FROM diagnosis_texts WHERE session_id = :s"
        ),
    ],
)
def test_texts_are_never_changed(store: Engine, statement: str) -> None:
    session = uuid4().hex
    write(store, session, "as it was")
    with pytest.raises(DBAPIError), store.writing(TENANT) as connection:
        connection.execute(text(statement), {"s": session})
    assert whole(store, session) == "as it was"


@pytest.mark.only("sqlite")
def test_replacing_a_piece_is_refused(store: Engine) -> None:
    write(store, "replaced", "as it was")
    with pytest.raises(DBAPIError, match="must follow"), store.writing(TENANT) as connection:
        connection.exec_driver_sql(
            "INSERT OR REPLACE INTO diagnosis_texts SELECT tenant_id, session_id, source_id, number,"
            " start, chars, line, 'other' FROM diagnosis_texts WHERE session_id = 'replaced'"
        )


@pytest.mark.only("postgresql")
def test_truncating_texts_is_refused(store: Engine) -> None:
    with pytest.raises(DBAPIError, match="never changed"), store.writing(TENANT) as connection:
        connection.exec_driver_sql("TRUNCATE diagnosis_texts")


@pytest.mark.only("postgresql")
def test_row_level_security_hides_texts_and_digests(store: Engine) -> None:
    session = uuid4().hex
    with store.writing(TENANT) as connection:
        log.append(connection, TENANT, session, [note()])
        texts.write(connection, TENANT, session, "s1", "ours")
        texts.keep_digest(connection, TENANT, session, "s1", 1, Digest())
    for name in ("diagnosis_texts", "diagnosis_digests"):
        count = text(f"SELECT count(*) FROM {name} WHERE session_id = :s")
        for tenant, expected in ((TENANT, 1), ("globex", 0), (None, 0)):
            with store.reading(tenant) as connection:
                assert connection.execute(count, {"s": session}).scalar() == expected


def test_statements_see_the_tenants_own_texts_alone(store: Engine, long: str) -> None:
    with store.writing("globex") as connection:
        assert texts.ids(connection, "globex", long) == []
        assert texts.read(connection, "globex", long, "s1", 0, 10) == ""
        assert texts.search(connection, "globex", long, ["common"], most=5) == []
        assert texts.lines(connection, "globex", long, "s1", 1, 5) == []
        # The same ids in another tenant are another text.
        texts.write(connection, "globex", long, "s1", "theirs")
    assert whole(store, long, tenant="globex") == "theirs"
    assert whole(store, long) == LONG


# --- writing -------------------------------------------------------------------------------------


def test_text_in_parts_is_the_same_pieces(store: Engine, long: str) -> None:
    session = uuid4().hex
    write(store, session, (LONG[at : at + 1000] for at in range(0, len(LONG), 1000)))
    assert whole(store, session) == whole(store, long) == LONG
    assert rows(store, session) == rows(store, long) > 3
    with store.reading(TENANT) as connection:
        sizes = [len(each) for each in texts.stream(connection, TENANT, session, "s1")]
    assert max(sizes) <= texts.PIECE
    assert min(sizes) > 0


def test_empty_text_is_a_text(store: Engine) -> None:
    write(store, "empty", "")
    assert rows(store, "empty") == 1
    with store.reading(TENANT) as connection:
        assert texts.ids(connection, TENANT, "empty") == ["s1"]
    assert texts.measure([]) == texts.measure([""])


def test_text_that_is_written_again_stays(store: Engine) -> None:
    write(store, "twice", "first")
    write(store, "twice", "second")
    assert whole(store, "twice") == "first"


def test_failing_writer_leaves_nothing(store: Engine) -> None:
    def broken() -> Iterable[str]:
        yield LONG
        raise InterruptedError

    with pytest.raises(InterruptedError):
        write(store, "broken", broken())
    assert rows(store, "broken") == 0


def test_what_no_database_holds_is_replaced(store: Engine) -> None:
    given_text = "a\0b\ud800c\udfffd\N{PILE OF POO}"
    write(store, "odd", given_text)
    assert whole(store, "odd") == "a\ufffdb\ufffdc\ufffdd\N{PILE OF POO}"
    assert texts.measure([given_text]) == texts.measure([whole(store, "odd")])
    assert texts.measure([given_text]).chars == len(given_text)


@pytest.mark.parametrize(("given_text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\n\nb", 3)])
def test_lines_are_counted(given_text: str, lines: int) -> None:
    assert texts.measure([given_text]).lines == lines
    assert texts.measure(list(given_text)).lines == lines


# --- reading -------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(start=st.integers(-5, len(LONG) + 5), size=st.integers(-2, texts.PIECE * 2))
def test_slice_is_that_of_the_text(store: Engine, long: str, start: int, size: int) -> None:
    with store.reading(TENANT) as connection:
        found = texts.read(connection, TENANT, long, "s1", start, start + size)
    assert found == LONG[max(0, start) : max(0, start + size)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(line=st.integers(-2, len(LINES) + 3), count=st.integers(1, 30))
def test_lines_are_those_of_the_text(store: Engine, long: str, line: int, count: int) -> None:
    with store.reading(TENANT) as connection:
        found = texts.lines(connection, TENANT, long, "s1", line, count)
    first = max(1, line)
    expected = LINES[first - 1 : first - 1 + count]
    assert [each.text for each in found] == [each.rstrip("\r")[: texts.SHOWN] for each in expected]
    assert [each.line for each in found] == list(range(first, first + len(expected)))
    assert all(LONG[each.start : each.end] == each.text for each in found)


def test_lines_with_all_words_are_found(store: Engine, long: str) -> None:
    with store.reading(TENANT) as connection:

        def search(*words: str, most: int = 10, source: str | None = None) -> list[texts.Found]:
            return texts.search(connection, TENANT, long, words, source=source, most=most)

        found = search("needle")
        assert [each.line for each in found] == [20_001, 21_002]
        assert [len(each.text) <= texts.SHOWN for each in found] == [True, True]
        assert all(
            LONG[each.start : each.end] == each.text and "needle" in each.text.lower()
            for each in found
        )
        assert [each.text for each in search("HERE", "needle")] == ["İstanbul NEEDLE here"]
        assert [each.line for each in search("common", "19999")] == [20_000]
        assert len(search("common", most=7)) == 7
        assert [each.line for each in search("common", most=3)] == [1, 2, 3]
        assert search("needle", source="s2") == search() == search("") == search("nowhere") == []
        assert search("needle", source="s1") == found


# --- texts of older versions ---------------------------------------------------------------------


def test_text_of_an_event_of_an_earlier_version_is_read(store: Engine) -> None:
    file = ROOT / "tests/unit/my_agent/diagnosis/sessions.json"
    older = json.loads(file.read_text("utf-8"))[0]
    session = uuid4().hex
    with store.writing(TENANT) as connection:
        for each in chained([tuple(one) for one in older["events"]], session):
            values = {**each._asdict(), "data": dumps(each.data)}
            connection.execute(insert(table).values(tenant_id=TENANT, session_id=session, **values))
    [first] = [data for kind, _, data in older["events"] if kind == "source_added"][:1]
    with store.reading(TENANT) as connection:
        assert first["id"] in texts.ids(connection, TENANT, session)
        assert whole(store, session, first["id"]) == first["text"]
        assert texts.read(connection, TENANT, session, first["id"], 3, 9) == first["text"][3:9]
        [line] = texts.lines(connection, TENANT, session, first["id"], 1, 1)
        assert line.text == first["text"].split("\n")[0]
        word = line.text.split()[-1]
        assert texts.search(connection, TENANT, session, [word], most=1)[0].source == first["id"]


# --- digests -------------------------------------------------------------------------------------


def test_digest_of_the_current_readers_is_kept(store: Engine) -> None:
    made = Digest(lines=3, first=7, calls=[("a", "b")])
    group = Group(
        "syslog", "a", "error", "trouble", "t", "x", 2, [Place(0, 3, 1)], histogram={4: 2}
    )
    made.groups.append(group)
    session = uuid4().hex
    with store.writing(TENANT) as connection:
        texts.keep_digest(connection, TENANT, session, "s1", 1, made)
        assert texts.digest(connection, TENANT, session, "s1", 1) is None, "there is no session"
        log.append(connection, TENANT, session, [note()])
        texts.keep_digest(connection, TENANT, session, "s1", 1, Digest())
        texts.keep_digest(connection, TENANT, session, "s1", 2, made)
        texts.keep_digest(connection, TENANT, session, "s1", 2, made)
    with store.reading(TENANT) as connection:
        assert texts.digest(connection, TENANT, session, "s1", 2) == made
        assert texts.digest(connection, TENANT, session, "s1", 1) is None
        assert texts.digest(connection, TENANT, session, "s2", 2) is None
