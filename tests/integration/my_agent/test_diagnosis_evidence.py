"""Files that people upload to a diagnosis, and branches that they make, through the server's routes."""

import asyncio
import gzip
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import text

from my_agent.diagnosis.record import branching, log, texts
from my_agent.diagnosis.record.events import MessageAdded, new
from my_agent.diagnosis.settings import DiagnosisSettings
from my_agent.diagnosis.uploads import SessionFull, Unsuitable, Upload
from my_agent.tables import tables
from tests.support import databases
from tests.support.diagnosis import note
from tests.support.policy import SECRET, Member, member
from tests.support.processes import ROOT, Running
from tests.support.products import engine
from tests.support.served import served
from tests.support.tutor import NO_MODEL
from threadhold.tables import Engine

pytestmark = pytest.mark.usefixtures("each_database")

LOG = "2026-03-02 09:40:00,000 ERROR [payments] write failed: No space left on device\n"
LARGE = 50 * 1024 * 1024
MEMORY = 80 * 1024 * 1024
"""What the upload of the largest file may add to the memory of the server, in bytes."""
TENANT = "acme"


def config(folder: Path) -> Path:
    file = folder / "langgraph.json"
    project = {
        "graphs": {"diagnosis": f"{ROOT}/my_agent/diagnosis/graph.py:graph"},
        "auth": {"path": "hooks.auth:auth"},
        "sql": {"hooks": "hooks.threads:policy", "tenant_key": "tenant_id"},
    }
    file.write_text(json.dumps(project))
    return file


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evidence")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    # The policy governs the graph, too: a branch must not lock its origin.
    env = {**NO_MODEL, "JWT_SECRET": SECRET, "THREAD_POLICY_AGENTS": "diagnosis"}
    with served(folder, config(folder), **env) as started:
        yield started


@pytest.fixture(scope="module")
def store(server: Running, folder: Path) -> Iterator[Engine]:
    """The tables of the running server."""
    opened_store = tables.open(databases.url(folder / "data.db"))
    yield opened_store
    opened_store.close()


@pytest.fixture
async def ada(server: Running) -> AsyncIterator[Member]:
    async with member(server) as client:
        yield client


async def put(client: Member, thread: str, name: str, content: Any) -> httpx.Response:
    return await client.http.put(f"/diagnosis/{thread}/sources/{name}", content=content)


async def slice_of(client: Member, thread: str, source: str, **query: int) -> dict[str, Any]:
    found: dict[str, Any] = await client.get(f"/diagnosis/{thread}/sources/{source}", params=query)
    return found


async def sources(client: Member, thread: str) -> dict[str, Any]:
    return dict((await client.get(f"/diagnosis/{thread}/state"))["state"]["sources"])


# --- uploads -------------------------------------------------------------------------------------


async def test_uploaded_file_is_a_source(ada: Member) -> None:
    thread = await ada.thread()
    answer = await put(ada, thread, "payments.log", LOG * 3)
    assert (answer.status_code, answer.headers["etag"]) == (201, '"1"'), answer.text
    source = answer.json()["source"]
    assert (source["name"], source["kind"]) == ("payments", "log")
    assert (source["lines"], source["chars"]) == (3, 3 * len(LOG))
    whole = await slice_of(ada, thread, source["id"])
    assert (whole["text"], whole["next"], whole["source"]["chars"]) == (
        LOG * 3,
        None,
        3 * len(LOG),
    )
    part = await slice_of(ada, thread, source["id"], start=24, end=29)
    assert (part["text"], part["start"], part["end"], part["next"]) == ("ERROR", 24, 29, 29)
    assert (await ada.post(f"/diagnosis/{thread}/replay"))["equal"]


async def test_same_file_is_one_source_also_at_the_same_time(ada: Member) -> None:
    thread = await ada.thread()
    content = LOG * 2000
    answers = await asyncio.gather(*(put(ada, thread, "a.log", content) for _ in range(4)))
    assert sorted(each.status_code for each in answers) == [200, 200, 200, 201]
    assert len({each.json()["source"]["id"] for each in answers}) == 1
    others = await asyncio.gather(*(put(ada, thread, f"b{n}.log", content) for n in range(3)))
    assert [each.status_code for each in others] == [201, 201, 201]
    assert len(await sources(ada, thread)) == 4
    assert (await ada.post(f"/diagnosis/{thread}/replay"))["equal"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Zäh\n".encode(), "Zäh\n"),
        ("Zäh\n".encode("utf-8-sig"), "Zäh\n"),
        ("Zäh\n".encode("utf-16"), "Zäh\n"),
        (b"\xfe\xff" + "Zäh\n".encode("utf-16-be"), "Zäh\n"),
        ("Zäh\n".encode("utf-32"), "Zäh\n"),
        ("Zäh\n".encode("latin-1"), "Zäh\n"),
        ("Zäh".encode()[:-1] + "ä".encode()[:1], "Zä\ufffd"),
        (b"a\0b\n", "a\ufffdb\n"),
        (b"\xff\xfe" + b"\x00\xd8a\0", "\ufffda"),
        (b"\xed\xa0\x80\n", "í\xa0\x80\n"),
        (b"\r\n\r\n", "\r\n\r\n"),
    ],
    ids=str,
)
async def test_any_encoding_is_read(ada: Member, content: bytes, expected: str) -> None:
    thread = await ada.thread()
    answer = await put(ada, thread, "file", content)
    assert answer.status_code == 201, answer.text
    source = answer.json()["source"]
    assert (await slice_of(ada, thread, source["id"]))["text"] == expected
    assert source["chars"] == len(expected)
    assert (await ada.post(f"/diagnosis/{thread}/replay"))["equal"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("payments.log.1", "payments"),
        ("a%20b.txt", "a b"),
        ("..", ".."),
        ("C:%5Clogs%5Capp.log", "app"),
        ("%E2%80%AEgol.exe", "gol.exe"),
        ("x" * 3000, "x" * 200),
        (".log", ".log"),
    ],
)
async def test_name_is_that_of_the_file(ada: Member, name: str, expected: str) -> None:
    thread = await ada.thread()
    # A client that normalises paths would send `..` elsewhere.
    answer = await put(ada, thread, name.replace("..", "%2E%2E"), LOG)
    assert answer.status_code == 201, answer.text
    assert answer.json()["source"]["name"] == expected


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.log", b"", "is empty"),
        ("a.log.gz", gzip.compress(b"x", mtime=0), "unpack it first"),
        ("a.zip", b"PK\x03\x04rest", "unpack it first"),
        ("%00%07", LOG.encode(), "no name"),
    ],
)
async def test_file_that_cannot_be_a_source_is_refused(
    ada: Member, name: str, content: bytes, said: str
) -> None:
    thread = await ada.thread()
    answer = await put(ada, thread, name, content)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert await sources(ada, thread) == {}


async def generated(size: int) -> AsyncIterator[bytes]:
    """Yield lines that differ, of this size in all."""
    sent = 0
    while sent < size:
        lines = "".join(
            f"2026-03-02 09:40:00,000 ERROR [payments] request {sent + each} failed\n"
            for each in range(1000)
        )
        part = lines.encode()[: size - sent]
        sent += len(part)
        yield part


def memory(process: int, name: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    [found] = [each for each in lines if each.startswith(f"{name}:")]
    return int(found.split()[1]) * 1024


async def test_largest_file_is_stored_in_bounded_memory(server: Running, ada: Member) -> None:
    thread = await ada.thread()
    await put(ada, thread, "warm.log", LOG * 10_000)
    process = server.process.pid
    before = memory(process, "VmRSS")
    # Begin a new peak.
    Path(f"/proc/{process}/clear_refs").write_text("5")
    answer = await put(ada, thread, "large.log", generated(LARGE))
    assert answer.status_code == 201, answer.text
    assert memory(process, "VmHWM") - before < MEMORY
    source = answer.json()["source"]
    assert source["chars"] == LARGE
    end = await slice_of(ada, thread, source["id"], start=LARGE - 10, end=LARGE + 10)
    assert len(end["text"]) == 10
    found = await put(ada, thread, "larger.log", generated(LARGE + 1))
    assert found.status_code == 413
    assert "DIAGNOSIS_SOURCE_MAX_BYTES" in found.json()["detail"]
    assert len(await sources(ada, thread)) == 2


async def test_others_are_answered_while_a_file_is_stored(ada: Member) -> None:
    thread, other = await ada.thread(), await ada.thread()
    uploading = asyncio.create_task(put(ada, thread, "large.log", generated(LARGE)))
    clock = asyncio.get_running_loop().time
    slowest = 0.0
    while not uploading.done():
        begun = clock()
        await ada.get(f"/diagnosis/{other}/state")
        slowest = max(slowest, clock() - begun)
    assert (await uploading).status_code == 201
    # Seconds. Generous: both share the processor with other tests.
    assert slowest < 3


async def test_client_that_leaves_stores_nothing(ada: Member) -> None:
    thread = await ada.thread()

    async def cut() -> AsyncIterator[bytes]:
        yield LOG.encode() * 1000
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await put(ada, thread, "cut.log", cut())
    assert await sources(ada, thread) == {}
    assert (await put(ada, thread, "cut.log", LOG * 2)).status_code == 201


async def test_upload_to_another_users_thread_is_not_found(server: Running, ada: Member) -> None:
    thread = await ada.thread()
    source = (await put(ada, thread, "a.log", LOG)).json()["source"]["id"]
    for more in ({"tenant": "globex"}, {}):
        async with member(server, **more) as eve:
            for method, path, sent in (
                ("PUT", "sources/a.log", {"content": LOG}),
                ("GET", f"sources/{source}", {}),
                ("POST", "branch", {"json": {"at_seq": 1}}),
                ("GET", "diff?from_seq=0", {}),
            ):
                url = f"/diagnosis/{thread}/{path}"
                assert (await eve.http.request(method, url, **sent)).status_code == 404, path
            mine = await eve.thread()
            assert (await eve.http.get(f"/diagnosis/{mine}/sources/{source}")).status_code == 404


@pytest.mark.parametrize(
    "query",
    ["start=-1", "end=-1", "start=5&end=4", "start=0&end=200001", f"start={10**30}", "start=x"],
)
async def test_bad_part_is_refused(ada: Member, query: str) -> None:
    thread = await ada.thread()
    source = (await put(ada, thread, "a.log", LOG)).json()["source"]["id"]
    answer = await ada.http.get(f"/diagnosis/{thread}/sources/{source}?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"]
    beyond = await slice_of(ada, thread, source, start=10**9)
    assert (beyond["text"], beyond["next"]) == ("", None)


async def test_text_goes_with_its_thread(ada: Member, store: Engine) -> None:
    thread = await ada.thread()
    await put(ada, thread, "a.log", LOG)
    assert (await ada.http.delete(f"/threads/{thread}")).is_success

    def count(connection: Any) -> int:
        query = text("SELECT count(*) FROM diagnosis_texts WHERE session_id = :s")
        return int(connection.execute(query, {"s": thread}).scalar())

    assert store.read(count, "") == 0


@pytest.mark.only("sqlite")  # On Postgres another process would wait for the lease to end.
async def test_killed_server_leaves_nothing_of_a_file(tmp_path: Path) -> None:
    """It is killed while the pieces are written: a trigger of ours tells when."""
    url = databases.url(tmp_path / "data.db")
    env = {**NO_MODEL, "JWT_SECRET": SECRET}
    with served(tmp_path, config(tmp_path), **env) as started:
        async with member(started, "ada") as client:
            thread = await client.thread()
            await put(client, thread, "first.log", LOG)
            uploading = asyncio.create_task(put(client, thread, "large.log", generated(LARGE)))
            # The log that comes before the file grows while it is written.
            wal = tmp_path / "data.db-wal"
            start = wal.stat().st_size
            async with asyncio.timeout(60):
                while wal.stat().st_size < start + LARGE // 4 and not uploading.done():
                    await asyncio.sleep(0)
            os.kill(started.process.pid, signal.SIGKILL)
            with pytest.raises(httpx.HTTPError):
                await uploading
    with served(tmp_path, config(tmp_path), **env) as again:
        async with member(again, "ada") as client:
            assert len(await sources(client, thread)) == 1
            verdict = await client.post(f"/diagnosis/{thread}/replay")
            assert verdict["equal"]
            after = tables.open(url)
            with after.reading(TENANT) as connection:
                query = "SELECT count(*) FROM diagnosis_texts WHERE number > 0"
                assert connection.exec_driver_sql(query).scalar() == 0
            after.close()
            assert (await put(client, thread, "large.log", generated(LARGE))).status_code == 201


# --- limits, without a server --------------------------------------------------------------------


def uploaded(session: str, name: str, content: bytes, **limits: int) -> bool:
    settings = DiagnosisSettings(**limits)  # type: ignore[arg-type]
    with Upload(name) as file, engine().writing(TENANT) as connection:
        file.add(content)
        file.measure()
        # A transaction that collides with another one is run again.
        file.store(connection, TENANT, uuid4().hex, settings)
        return file.store(connection, TENANT, session, settings).is_new


@pytest.mark.usefixtures("product_database")
def test_session_takes_so_many_sources_and_characters() -> None:
    session = uuid4().hex
    for number in range(60):
        assert uploaded(session, f"f{number}", b"x")
    with pytest.raises(SessionFull, match="60 sources"):
        uploaded(session, "another", b"x")
    assert not uploaded(session, "f1", b"x")
    small = uuid4().hex
    assert uploaded(small, "a", b"x" * 60, max_session_chars=100)
    with pytest.raises(SessionFull, match="100 characters"):
        uploaded(small, "b", b"x" * 60, max_session_chars=100)
    with pytest.raises(Unsuitable):
        uploaded(small, "c", b"")
    with engine().reading(TENANT) as connection:
        assert len(texts.ids(connection, TENANT, small)) == 1


# --- branches ------------------------------------------------------------------------------------


def say(store: Engine, thread: str, number: int, tenant: str) -> None:
    """Record a message as a run does, with another event."""
    said = MessageAdded(id=f"m{number}", role="user", text=f"message {number}")
    answered = MessageAdded(id=f"a{number}", role="assistant", text=f"answer {number}")
    with store.writing(tenant) as connection:
        log.append(connection, tenant, thread, [new(said), new(answered), note(str(number))])


async def test_branch_is_a_thread_with_the_session_and_conversation(
    server: Running, store: Engine
) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    async with member(server, tenant=tenant) as ada:
        origin = await ada.thread(graph_id="diagnosis", title="Checkout is down")
        uploaded_file = await put(ada, origin, "a.log", LOG)
        source = uploaded_file.json()["source"]["id"]
        for number in range(3):
            say(store, origin, number, tenant)
        # The thread has one of the messages in full.
        long = "message 0, in full"
        sent = {"values": {"messages": [{"type": "human", "id": "m0", "content": long}]}}
        await ada.post(f"/threads/{origin}/state", {**sent, "as_node": "answer"})
        before = await ada.get(f"/diagnosis/{origin}/events")
        answer = await ada.http.post(f"/diagnosis/{origin}/branch", json={"at_seq": 7})
        assert answer.status_code == 201, answer.text
        into = answer.json()["thread_id"]
        state = await ada.get(f"/diagnosis/{into}/state")
        assert state["seq"] == answer.json()["seq"] == 8
        assert [each["text"] for each in state["state"]["notes"]] == ["0", "1"]
        assert (await slice_of(ada, into, source))["text"] == LOG
        shown = (await ada.get(f"/threads/{into}/state"))["values"]["messages"]
        assert [each["content"] for each in shown] == [
            long,
            "answer 0",
            "message 1",
            "answer 1",
        ]
        assert [each["type"] for each in shown] == ["human", "ai", "human", "ai"]
        metadata = (await ada.get(f"/threads/{into}"))["metadata"]
        assert metadata["graph_id"] == "diagnosis"
        assert metadata["title"] == "Checkout is down (from event 7)"
        assert metadata["branched_from"] == {"thread_id": origin, "seq": 7}
        # The origin stays as it was, and open.
        assert await ada.get(f"/diagnosis/{origin}/events") == before
        assert await ada.policy_statuses(origin, into) == ["open", "open"]
        # Both go on.
        for thread, seq in ((origin, 10), (into, 8)):
            added = await ada.http.post(
                f"/diagnosis/{thread}/events",
                json={"events": [{"text": "later"}]},
                headers={"if-match": f'"{seq}"'},
            )
            assert added.status_code == 201, added.text
            assert (await ada.post(f"/diagnosis/{thread}/replay"))["equal"]
        # And so does a branch of the branch, and two of the same moment.
        again = [
            (await ada.post(f"/diagnosis/{thread}/branch", {"at_seq": seq}))["thread_id"]
            for thread, seq in ((into, 9), (origin, 7))
        ]
        assert [(await ada.get(f"/diagnosis/{each}/state"))["seq"] for each in again] == [10, 8]
        assert await ada.policy_statuses(origin, into, *again) == ["open"] * 4
        for each in again:
            assert (await ada.post(f"/diagnosis/{each}/replay"))["equal"]


async def test_repeated_request_makes_one_branch(ada: Member) -> None:
    thread = await ada.thread()
    await put(ada, thread, "a.log", LOG)
    key = {"idempotency-key": uuid4().hex}
    made = [
        await ada.http.post(f"/diagnosis/{thread}/branch", json={"at_seq": 1}, headers=key)
        for _ in range(2)
    ]
    assert [each.status_code for each in made] == [201, 201]
    assert made[0].json() == made[1].json()
    assert made[1].headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("body", [{}, {"at_seq": 0}, {"at_seq": 9}, {"at_seq": "1"}, {"seq": 1}])
async def test_bad_moment_is_refused(ada: Member, body: dict[str, Any]) -> None:
    thread = await ada.thread()
    await put(ada, thread, "a.log", LOG)
    answer = await ada.http.post(f"/diagnosis/{thread}/branch", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"]


async def test_copied_thread_has_the_session(server: Running, store: Engine) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    async with member(server, tenant=tenant) as ada:
        origin = await ada.thread(graph_id="diagnosis")
        source = (await put(ada, origin, "a.log", LOG)).json()["source"]["id"]
        with store.reading(tenant) as connection:
            place = branching.place(connection, tenant, origin)
        # As a run leaves it.
        said = [{"type": "human", "content": "hello"}]
        values = {"values": {"messages": said, "place": place}, "as_node": "answer"}
        await ada.post(f"/threads/{origin}/state", values)
        copied = (await ada.post(f"/threads/{origin}/copy"))["thread_id"]
        assert list(await sources(ada, copied)) == [source]
        assert (await slice_of(ada, copied, source))["text"] == LOG
        assert (await put(ada, copied, "b.log", LOG)).status_code == 201
        assert len(await sources(ada, origin)) == 1
        assert (await ada.post(f"/diagnosis/{copied}/replay"))["equal"]
        # Who does not know the hash of an event gets nothing.
        other = await ada.thread(graph_id="diagnosis")
        made_up = {"messages": said, "place": {**place, "hash": "0" * 64}}
        await ada.post(f"/threads/{other}/state", {**values, "values": made_up})
        assert await sources(ada, other) == {}


async def test_difference_of_two_moments_is_shown(ada: Member) -> None:
    thread = await ada.thread()
    source = (await put(ada, thread, "a.log", LOG)).json()["source"]["id"]
    await put(ada, thread, "b.log", LOG)
    path = f"/diagnosis/{thread}/diff"
    found = await ada.get(path, params={"from_seq": 1})
    assert (found["from_seq"], found["to_seq"]) == (1, 2)
    assert found["diff"]["events"] == {"source_added": 1}
    [added] = found["diff"]["sources"]["added"].values()
    assert added["name"] == "b"
    back = await ada.get(path, params={"from_seq": 2, "to_seq": 0})
    assert source in back["diff"]["sources"]["removed"]
    for query in ("from_seq=-1", "from_seq=x", f"from_seq={10**20}", "from_seq=0&to_seq=-1"):
        assert (await ada.http.get(f"{path}?{query}")).status_code == 422, query
