"""Move everything from a SQLite file to Postgres: `threadhold migrate --from ... --to ...`."""

import asyncio
import hashlib
import json
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest
from click.testing import CliRunner

from langgraph_runtime_sql.database.schema import packed_id
from my_agent.diagnosis.record import log as diagnosis
from my_agent.diagnosis.record import texts
from my_agent.diagnosis.record.verify import verify
from my_agent.icp_finder.model import Candidate, Icp, Score, Scored, Site
from my_agent.icp_finder.records import store
from server.cli import main
from tests.support import databases
from tests.support.diagnosis import TEXT, note, opened, source
from tests.support.processes import (
    GRAPHS,
    ROOT,
    Running,
    environment,
    free_port,
    ran,
    running,
    threadhold,
)
from tests.support.products import engine, using

# Seconds to wait for a process.
PATIENCE = 120.0
SKARRA = "# Skarra Light\n\n## Tower\n\nIt has six levels.\n\n## Lamp\n\nIt burned paraffin.\n"
REGISTER = ROOT / "my_agent" / "companies" / "reference" / "made_up_register.csv"

EMBEDDINGS = """
def embed(texts):
    return [[float(text.count(word)) for word in ("cat", "dog", "fish")] for text in texts]
"""
# Values of a state, above all those that the two databases store in different forms.
KINDS = """
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict
from uuid import UUID

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import StateGraph


def append(state, writes):
    return [*state, *(each for write in writes for each in write)]


class State(TypedDict, total=False):
    log: Annotated[list[str], DeltaChannel(append, snapshot_frequency=2)]
    rare: Annotated[list[str], DeltaChannel(append, snapshot_frequency=1000)]
    text: str
    ratio: float
    large: int
    nothing: None
    raw: bytes
    kinds: Any
    step: int


def fill(state: State) -> State:
    return {
        "log": ["filled"], "rare": ["once"], "text": "half \\0 of it \\U0001f98a", "ratio": 1e22,
        "large": 2**63 - 1, "nothing": None, "raw": b"\\0\\xff", "step": 1,
        "kinds": {
            "set": {1, 2}, "when": datetime(2024, 1, 1, tzinfo=UTC), "id": UUID(int=7), 3: "three",
            "tuple": (1, 2.0), "small": 5e-324, "minus": -0.0,
        },
    }


def more(state: State) -> State:
    return {"log": [f"more {state['step']}"], "step": state["step"] + 1}


builder = StateGraph(State)
builder.add_sequence([fill, more])
builder.add_node("again", more)
builder.add_edge("more", "again")
builder.set_entry_point("fill")
graph = builder.compile()
"""


class Moved(NamedTuple):
    """The results of a move.

    Attributes:
        folder: Folder of the project and its SQLite file.
        target: The URL of the database that was moved to.
        answers: What the server answered before the move.
        ids: Ids of the objects that tests use after the move.
        half: Number of moved rows of each table when the first move was killed.
        refused: What a server, `doctor` and `doctor --fix` printed about the half-moved database.
        output: What the second move printed.
        unchanged: Digests of the file before and after.
    """

    folder: Path
    target: str
    answers: dict[str, Any]
    ids: dict[str, str]
    half: dict[str, Any]
    refused: list[str]
    output: str
    unchanged: tuple[str, str]


def project(folder: Path) -> None:
    """Write a project whose graphs leave many different kinds of data behind."""
    (folder / "embeddings.py").write_text(EMBEDDINGS)
    (folder / "kinds.py").write_text(KINDS)
    graphs = {name: f"{GRAPHS}/{name}.py:graph" for name in ("steps", "interrupt", "subgraph")}
    ours = {name: f"{ROOT}/my_agent/{name}/graph.py:graph" for name in ("chat", "icp_finder")}
    config = {
        "dependencies": ["."],
        "graphs": {**graphs, **ours, "kinds": "./kinds.py:graph"},
        "store": {
            "index": {"dims": 3, "embed": "./embeddings.py:embed", "fields": ["text"]},
            "ttl": {"sweep_interval_minutes": 60},
        },
    }
    (folder / "langgraph.json").write_text(json.dumps(config))


@contextmanager
def served(folder: Path, url: str, **env: str) -> Iterator[httpx.Client]:
    """Serve the project in `folder` on a database and yield a client."""
    with (
        started(folder, url, **env) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        yield client


@contextmanager
def started(folder: Path, url: str, **env: str) -> Iterator[Running]:
    port = free_port()
    command = threadhold("serve", "--config", folder / "langgraph.json", "--port", str(port))
    with running([*command, "--database-url", url], port, folder, settings(**env)) as server:
        yield server


def settings(**env: str) -> dict[str, str]:
    return environment(OPENAI_API_KEY="", OPENAI_BASE_URL="", **env)


def migrate(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `threadhold migrate` with these arguments in the project's folder."""
    return ran(threadhold("migrate", *arguments), folder, settings(**env))


def start(folder: Path, url: str) -> str:
    """Start a server that must fail, and return its output."""
    command = threadhold("serve", "--port", str(free_port()), "--database-url", url)
    done = ran(command, folder, settings())
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def file_url(folder: Path) -> str:
    return f"sqlite:///{folder}/data.db"


def digest(folder: Path) -> str:
    """Return a digest of the SQLite file and its write-ahead log."""
    found = hashlib.sha256()
    for name in ("data.db", "data.db-wal"):
        path = folder / name
        found.update(path.read_bytes() if path.exists() else b"")
    return found.hexdigest()


def post(api: httpx.Client, path: str, body: Any) -> Any:
    answer = api.post(path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


def get(api: httpx.Client, path: str) -> Any:
    answer = api.get(path)
    assert answer.is_success, answer.text
    return answer.json()


def run(api: httpx.Client, thread: str, graph: str, input: Any, **body: Any) -> Any:
    return post(
        api, f"/threads/{thread}/runs/wait", {"assistant_id": graph, "input": input, **body}
    )


def new_thread(api: httpx.Client, **metadata: Any) -> str:
    return str(post(api, "/threads", {"metadata": metadata})["thread_id"])


def fill(api: httpx.Client) -> dict[str, str]:
    """Create objects of every kind on a server; return the ids that later tests use."""
    steps = new_thread(api, topic="steps", ratio=0.5, nested={"deep": [1, 1e22, None]})
    for count in (2, 3):
        run(api, steps, "steps", {"count": count}, stream_resumable=True)
    asked = new_thread(api, topic="asked")
    run(api, asked, "interrupt", {"questions": ["one?"]})
    inside = new_thread(api, topic="inside")
    run(api, inside, "subgraph", {"topic": "cats"})
    kinds = new_thread(api, topic="kinds")
    run(api, kinds, "kinds", {})
    run(api, kinds, "kinds", {})
    api.post(f"/threads/{steps}/copy").raise_for_status()
    api.post(f"/threads/{steps}/state", json={"values": {"done": [9]}}).raise_for_status()
    assistant = post(api, "/assistants", {"graph_id": "steps", "name": "first"})["assistant_id"]
    changed = {"name": "second", "metadata": {"a": "b"}}
    api.patch(f"/assistants/{assistant}", json=changed).raise_for_status()
    cron = {"assistant_id": "steps", "schedule": "0 0 1 1 *", "input": {"count": 1}}
    post(api, f"/threads/{steps}/runs/crons", cron)
    post(api, "/runs/crons", {**cron, "timezone": "Asia/Singapore"})
    items = (
        (["notes", "of ada"], "cat", {"text": "cat cat dog", "n": 1e22}, None),
        (["notes"], "fish", {"text": "fish \U0001f98a"}, 60),
        (["notes"], "gone", {"text": "fish"}, 0.0001),
    )
    for namespace, key, value, ttl in items:
        body = {"namespace": namespace, "key": key, "value": value, "ttl": ttl}
        api.put("/store/items", json=body).raise_for_status()
    return {"steps": steps, "asked": asked, "inside": inside, "kinds": kinds}


def events(api: httpx.Client, thread: str, run_id: str) -> str:
    """Return the stored events of an ended run."""
    answer = api.get(f"/threads/{thread}/runs/{run_id}/stream", headers={"Last-Event-ID": "-1"})
    assert answer.is_success, answer.text
    return answer.text


async def fill_products(folder: Path) -> None:
    """Store documents, companies, and data of the ICP finder."""
    (folder / "documents").mkdir()
    (folder / "documents" / "skarra.md").write_text(SKARRA)
    for path in (folder / "documents", REGISTER):
        done = CliRunner().invoke(main, ["ingest", str(path), "--database-url", file_url(folder)])
        assert done.exit_code == 0, done.output
    with using(file_url(folder)):
        await fill_finder_and_diagnosis()


# Several pieces of a text.
LONG = "a line of \N{PILE OF POO}\n" * 60_000


async def fill_finder_and_diagnosis() -> None:
    site: Site = {"website": "https://acme.com", "domain": "acme.com", "name": "", "about": ""}
    icp: Icp = {"industries": [], "sizes": [], "regions": ["Singapore"], "keywords": []}
    found = [
        Scored(
            Candidate(key=f"uen:{n}", name=f"Company {n}", source="register", ssic=["62011"]),
            Score(1 - n / 10, {"industry": 0.35, "size": 0.05}),
        )
        for n in range(3)
    ]
    await store.save_profile("local", {"site": site, "customers": []}, confirmed=True)
    await store.save_rule("local", "acme.com", "Default ICP", icp, confirmed=True)
    basis: Any = {"website": "acme.com", "customers": [], "icp": {**icp, "ratio": 1e22}}
    await store.save_discovery("local", "Default ICP", "hash", basis, found)
    with engine().writing("local") as connection:
        diagnosis.append(connection, "local", "incident", opened())
        texts.write(connection, "local", "incident", "s1", TEXT)
        diagnosis.append(connection, "local", "incident", [source("s2", LONG)])
        texts.write(connection, "local", "incident", "s2", LONG)
        diagnosis.append(connection, "local", "incident", [note("é \0 \N{PILE OF POO}")] * 300)


def answers(api: httpx.Client) -> dict[str, Any]:
    """Return what a server answers about everything it holds."""
    threads = [
        each
        for each in post(api, "/threads/search", {"limit": 100, "sort_by": "created_at"})
        if each["metadata"].get("topic") != "waiting"
    ]
    found: dict[str, Any] = {"threads": threads}
    for thread in (each["thread_id"] for each in threads):
        found[f"runs of {thread}"] = get(api, f"/threads/{thread}/runs")
        found[f"state of {thread}"] = get(api, f"/threads/{thread}/state?subgraphs=true")
        for each in found[f"runs of {thread}"]:
            found[f"events of {each['run_id']}"] = events(api, thread, each["run_id"])
        found[f"history of {thread}"] = get(api, f"/threads/{thread}/history?limit=100")
    streams = [found[key] for key in found if key.startswith("events of ")]
    # Both resumable runs have their events.
    assert sum("\nid: " in each and "event: error" not in each for each in streams) == 2
    found["by label"] = post(api, "/threads/search", {"metadata": {"topic": "asked"}})
    found["assistants"] = post(api, "/assistants/search", {"limit": 100, "sort_by": "name"})
    for each in found["assistants"]:
        assistant = each["assistant_id"]
        found[f"versions of {assistant}"] = post(api, f"/assistants/{assistant}/versions", {})
    found["crons"] = post(api, "/runs/crons/search", {"limit": 100})
    found["namespaces"] = post(api, "/store/namespaces", {})
    found["items"] = post(api, "/store/items/search", {"namespace_prefix": ["notes"]})
    nearest = {"namespace_prefix": ["notes"], "query": "cat dog"}
    found["nearest"] = post(api, "/store/items/search", nearest)
    found["scores"] = api.get("/export/latest_scores.csv").text
    return found


def rounded(answer: Any) -> Any:
    """Round the scores of an answer: one database computes with 32 bits, the other with 64.

    The data of events is parsed: one database keeps the order of a state's keys.
    """
    if isinstance(answer, str):
        found = [line.partition(": ") for line in answer.splitlines()]
        return [(name, json.loads(rest) if name == "data" else rest) for name, _, rest in found]
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        return answer
    return [{**each, "score": each["score"] and round(each["score"], 5)} for each in items]


def ask_documents(api: httpx.Client) -> Any:
    """Ask a question about the documents and return answer and citations."""
    output = post(api, "/api/ask", {"question": "How many levels has Skarra Light?"})
    return output["answer"], output["citations"]


def killed_while_moving(folder: Path, target: str, thread: str) -> dict[str, Any]:
    """Start a move, kill it at the checkpoints of a thread, and return the moved row counts."""
    with closing(psycopg.connect(target, options=databases.EVERYTHING)) as obstacle:
        # The move inserts the same key, so it waits for the end of this transaction.
        with closing(sqlite3.connect(folder / "data.db")) as raw:
            place = raw.execute(
                "SELECT thread_id, checkpoint_id FROM thread_checkpoints WHERE thread_id = ?",
                (packed_id(thread),),
            ).fetchone()
        obstacle.execute(
            "INSERT INTO thread_checkpoints (thread_id, checkpoint_ns, checkpoint_id, has_deltas,"
            " position, size, type, value) VALUES (%s, '', %s, false, 0, 0, '', '')",
            place,
        )
        command = threadhold("migrate", "--from", file_url(folder), "--to", target)
        move = subprocess.Popen(command, cwd=folder, env=settings(), stdout=subprocess.DEVNULL)
        try:
            wait_for(
                target,
                "SELECT count(*) > 0 FROM pg_stat_activity"
                " WHERE wait_event_type = 'Lock' AND datname = current_database()",
            )
            move.send_signal(signal.SIGKILL)
        finally:
            move.kill()
            assert move.wait(PATIENCE) == -signal.SIGKILL
        obstacle.rollback()
    # Postgres has noticed the death and released the locks.
    wait_for(target, "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database()")
    with closing(psycopg.connect(target, options=databases.EVERYTHING)) as raw:
        return dict(raw.execute("SELECT name, moved FROM move_parts").fetchall())


def wait_for(target: str, question: str) -> None:
    """Wait until the query returns true."""
    deadline = time.monotonic() + PATIENCE
    with psycopg.connect(target, autocommit=True, options=databases.EVERYTHING) as raw:
        while not raw.execute(question.encode()).fetchall()[0][0]:
            assert time.monotonic() < deadline, question
            time.sleep(0.05)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Moved:
    """Fill a server and move it to Postgres with a move that is killed and repeated."""
    folder = tmp_path_factory.mktemp("move")
    # The target has all tables and no rows.
    target = databases.server().database(folder / "target")
    project(folder)
    with served(folder, file_url(folder)) as api:
        ids = fill(api)
        asyncio.run(fill_products(folder))
        cited = ask_documents(api)
    with served(folder, file_url(folder), N_JOBS_PER_WORKER="0") as api:
        before = answers(api)
        # Without workers, this run waits for the next start.
        ids["waiting"] = new_thread(api, topic="waiting")
        body = {"assistant_id": "steps", "input": {"count": 2}}
        ids["run"] = post(api, f"/threads/{ids['waiting']}/runs", body)["run_id"]
    first = digest(folder)
    half = killed_while_moving(folder, target, ids["steps"])
    refused = [start(folder, target)]
    for options in ((), ("--fix",)):
        line = threadhold("doctor", "--database-url", target, *options)
        refused.append(ran(line, folder, environment()).stderr)
    done = migrate(folder, "--from", file_url(folder), "--to", target)
    assert done.returncode == 0, done.stdout + done.stderr
    unchanged = first, digest(folder)
    answers_before = {**before, "cited": cited}
    return Moved(
        folder, target, answers_before, ids, half, refused, done.stderr + done.stdout, unchanged
    )


@pytest.fixture(scope="module")
def api(moved: Moved) -> Iterator[httpx.Client]:
    """Yield a client of a server on the moved database."""
    with served(moved.folder, moved.target) as client:
        yield client


def test_moved_server_answers_as_before(moved: Moved, api: httpx.Client) -> None:
    found = answers(api)
    assert found.keys() | {"cited"} == moved.answers.keys()
    for question, answer in found.items():
        assert rounded(answer) == rounded(moved.answers[question]), question
    # The compared servers were not empty.
    assert len(found["threads"]) == 6
    assert len(found[f"history of {moved.ids['kinds']}"]) >= 8
    assert [each["key"] for each in found["items"]["items"]] == ["fish", "cat"]
    assert [each["key"] for each in found["nearest"]["items"]] == ["cat", "fish"]
    assert len(found["crons"]) == 2
    assert found["scores"].count("acme.com") == 3


def test_moved_documents_answer_as_before(moved: Moved, api: httpx.Client) -> None:
    answer, citations = ask_documents(api)
    assert [answer, citations] == list(moved.answers["cited"])
    assert "six levels" in citations[0]["text"]


def test_moved_session_of_the_diagnosis_is_whole_and_continues(moved: Moved) -> None:
    with using(moved.target), engine().writing("local") as connection:
        assert verify(connection, "local", "incident", None) == (306, True, "whole", None)
        assert diagnosis.moment(connection, "local", "incident", at_seq=260).read == 10
        assert "".join(texts.stream(connection, "local", "incident", "s2")) == LONG
        assert diagnosis.append(connection, "local", "incident", [note()]).seq == 307


def test_moved_pending_run_is_executed(moved: Moved, api: httpx.Client) -> None:
    thread, run_id = moved.ids["waiting"], moved.ids["run"]
    get(api, f"/threads/{thread}/runs/{run_id}/join")
    assert get(api, f"/threads/{thread}/runs/{run_id}")["status"] == "success"
    assert get(api, f"/threads/{thread}/state")["values"]["done"] == [0, 1]


def test_moved_interrupts_can_be_resumed(moved: Moved, api: httpx.Client) -> None:
    answered = run(api, moved.ids["asked"], "interrupt", None, command={"resume": "yes"})
    assert answered["summary"] == "yes"
    inside = run(api, moved.ids["inside"], "subgraph", None, command={"resume": "well"})
    assert inside["trail"] == ["before", "after well"]


def test_new_runs_continue_moved_threads(moved: Moved, api: httpx.Client) -> None:
    before = get(api, f"/threads/{moved.ids['kinds']}/runs")
    values = run(api, moved.ids["kinds"], "kinds", {})
    after = get(api, f"/threads/{moved.ids['kinds']}/runs")
    assert [each["run_id"] for each in after[1:]] == [each["run_id"] for each in before]
    assert values["log"] == ["filled", "more 1", "more 2"] * 3
    assert values["rare"] == ["once"] * 3
    assert "filled" in get(api, f"/threads/{moved.ids['kinds']}/state")["values"]["log"]


def test_move_does_not_change_the_file(moved: Moved) -> None:
    assert moved.unchanged[0] == moved.unchanged[1]


def test_move_command_prints_its_phases(moved: Moved) -> None:
    for phase in ("Moving", "Comparing"):
        assert phase in moved.output
    # The check was completed before the kill.
    assert "Checking" not in moved.output
    assert "companies: " in moved.output
    assert "is unchanged" in moved.output
    # Every table in the file is known, so the output names no table that was left.
    assert "Not moved" not in moved.output


def test_killed_move_had_moved_only_a_part(moved: Moved) -> None:
    with closing(sqlite3.connect(moved.folder / "data.db")) as raw:
        [(assistants,)] = raw.execute("SELECT count(*) FROM assistants").fetchall()
        [(checkpoints,)] = raw.execute("SELECT count(*) FROM thread_checkpoints").fetchall()
    assert moved.half["assistants"] == assistants > 0
    assert moved.half["thread_checkpoints"] < checkpoints
    assert moved.half["store"] == 0


def test_half_moved_database_is_neither_served_nor_repaired(moved: Moved) -> None:
    assert len(moved.refused) == 3
    for output in moved.refused:
        assert "was not finished" in output
        assert f"--from {file_url(moved.folder)}" in output
