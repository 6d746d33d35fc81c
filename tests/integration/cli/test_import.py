"""`threadhold import` from langgraph's savers: the same states, once, and errors that say what to do."""

import dataclasses
import itertools
import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command, interrupt

from langgraph_runtime_sql import migrations, process
from langgraph_runtime_sql.checkpoint import Checkpointer
from langgraph_runtime_sql.options import Options
from langgraph_runtime_sql.progress import ignore
from langgraph_runtime_sql.tenancy.scope import label
from tests.support import databases
from threadhold.admin.beside import opened_beside_server
from threadhold.admin.doctor import examine
from threadhold.imports import CannotImport, Plan, Report, run
from threadhold.imports.address import opened
from threadhold.imports.target import Target, thread_id_of

pytestmark = pytest.mark.usefixtures("each_database", "settings")

NAMES = ("ana/1", "01a21864-452e-752b-b6cd-35ffca0d5d4d")


@dataclasses.dataclass
class Note:
    """A class of the project, which an import must not need."""

    text: str


class State(MessagesState):
    note: Note


def _answer(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage(f"to {len(state['messages'])}")], "note": Note("a")}


def _ask(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage(interrupt({"question": "sure?"}))]}


GRAPH = (
    StateGraph(State)
    .add_node("answer", _answer)
    .add_node("ask", _ask)
    .add_edge(START, "answer")
    .add_edge("answer", "ask")
    .add_edge("ask", END)
)


def fill(saver: Any, store: Any) -> None:
    """Let a graph of a project write: one thread waits, one has gone on after an answer."""
    graph = GRAPH.compile(checkpointer=saver)
    for name in NAMES:
        config: Any = {"configurable": {"thread_id": name}}
        graph.invoke({"messages": [HumanMessage("hi")]}, config)
    graph.invoke(Command(resume="yes"), config)
    store.put(("notes", "x"), "k", {"v": 1})


@contextmanager
def kept_in_sqlite(folder: Path) -> Iterator[str]:
    path = folder / "theirs.db"
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as raw:
        saver, store = SqliteSaver(raw), SqliteStore(raw)
        store.setup()
        fill(saver, store)
        yield str(path)


@contextmanager
def kept_in_postgres(folder: Path) -> Iterator[str]:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.store.postgres import PostgresStore

    url = databases.empty(folder / "theirs.db")
    with PostgresSaver.from_conn_string(url) as saver, PostgresStore.from_conn_string(url) as store:
        saver.setup()
        store.setup()
        fill(saver, store)
        yield url


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[str]:
    make = kept_in_sqlite if databases.kind() == "sqlite" else kept_in_postgres
    with make(tmp_path) as found:
        yield found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def url(path: Path) -> str:
    return databases.url(path)


def bring(address: str, url: str, **asked: Any) -> Report:
    plan = Plan(**{"graph_id": "echo", **asked})
    with opened(address) as source, opened_beside_server(url, plan.tenant_key) as database:
        return run(source, Target(database), plan, ignore)


class Cut(Exception):
    """The import ends here."""


@contextmanager
def cut_at(name: str, number: int) -> Iterator[None]:
    """Raise at a call of a method of the saver."""
    calls, method = itertools.count(1), getattr(Checkpointer, name)

    def called(*args: Any) -> Any:
        if next(calls) == number:
            raise Cut
        return method(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpointer, name, called)
        yield


def test_every_state_is_the_one_that_the_saver_had(kept: str, url: str, path: Path) -> None:
    assert bring(kept, url, is_dry_run=True).imported["threads"] == len(NAMES)
    # In the middle of a thread, and between a checkpoint and what was written onto it.
    for name in ("put", "put_writes"):
        with pytest.raises(Cut), cut_at(name, 2):
            bring(kept, url)
    report = bring(kept, url)
    assert report.found["threads"] == len(NAMES)
    assert report.imported["store items"] == 1
    assert not +bring(kept, url).imported
    with opened(kept) as source, opened_beside_server(url):
        for name in NAMES:
            wanted = states(source.states, name)
            assert len(wanted) > 2
            assert (
                states(Checkpointer(unpack_hook=ormsgpack.Ext), str(thread_id_of(name))) == wanted
            )
        # Objects of the project's classes are what they were, and who waited is answered.
        graph = GRAPH.compile(checkpointer=Checkpointer())
        here: Any = {"configurable": {"thread_id": str(thread_id_of(NAMES[0]))}}
        assert graph.get_state(here).values["note"] == Note("a")
        assert graph.invoke(Command(resume="yes"), here)["messages"][-1].content == "yes"
    assert examine(url) == []
    shown = 'SELECT thread_id, status, "values", interrupts, metadata FROM threads'
    rows = {str(row[0]): row for row in databases.execute(path, shown)}
    waits, went_on = (rows[str(thread_id_of(name))] for name in NAMES)
    assert waits[1] == "interrupted"
    assert "sure?" in str(waits[3])
    assert "ana/1" in str(waits[4])
    assert went_on[1] == "idle"
    assert "yes" in str(went_on[2])


def states(saver: Any, thread: str) -> dict[str, Any]:
    """Return the checkpoints of a thread as bytes, by id."""

    def exact(value: Any) -> bytes:
        return ormsgpack.packb(value, option=ormsgpack.OPT_SORT_KEYS)

    return {
        each.checkpoint["id"]: (
            exact(each.checkpoint),
            exact(each.metadata),
            sorted(map(exact, each.pending_writes)),
            each.parent_config is None,
        )
        for each in saver.list({"configurable": {"thread_id": thread}})
    }


def test_what_is_given_to_a_tenant_is_the_tenants(
    kept: str, url: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(tenant_key="tenant_id")
    monkeypatch.setattr(process.process, "configuration", process.Configuration(options=options))
    unnamed = bring(kept, url, tenant_key="tenant_id")
    assert unnamed.found["threads"] == 0
    assert sum(unnamed.left_out.values()) == len(NAMES)
    bring(kept, url, tenant_key="tenant_id", tenant="acme")
    tenants = databases.execute(path, "SELECT DISTINCT tenant FROM threads")
    assert tenants == [("acme",)]
    [[prefix]] = databases.execute(
        path, "SELECT prefix FROM store WHERE key = 'k' AND prefix LIKE '%acme%'"
    )
    assert prefix == f"{label('acme')}.notes.x"


class Touch:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.only("sqlite")
def test_a_pickle_runs_no_code(tmp_path: Path, url: str) -> None:
    ran = tmp_path / "ran"
    folder = tmp_path / ".langgraph_api"
    folder.mkdir()
    content = {"threads": [], "assistants": [], "values": Touch(ran)}
    (folder / ".langgraph_ops.pckl").write_bytes(pickle.dumps(content, 2))
    report = bring(str(tmp_path), url)
    assert not +report.found
    assert not ran.exists()


@pytest.mark.only("sqlite")
def test_what_cannot_be_read_is_named(tmp_path: Path, url: str) -> None:
    migrations.migrate(url)
    (tmp_path / "text").write_text("no database, but some text that is long enough " * 99)
    empty, cut = tmp_path / "empty", tmp_path / "cut"
    for each in (empty, cut):
        each.mkdir()
    (cut / ".langgraph_ops.pckl").write_bytes(pickle.dumps({"threads": [1, 2, 3]}, 2)[:-5])
    for address, wanted in {
        str(tmp_path / "none"): "There is nothing at",
        str(tmp_path / "text"): "file is not a database",
        str(empty): "has stored nothing there",
        str(cut): "cannot be read",
        url: "migrate --from --to",
        "http://127.0.0.1:9": "cannot be read",
        "postgresql://nobody@127.0.0.1:9/none": "cannot be read",
    }.items():
        with pytest.raises(CannotImport, match=wanted):
            bring(address, url)


def test_a_plan_that_lacks_something_is_refused(kept: str, url: str) -> None:
    with pytest.raises(CannotImport, match="--graph"):
        bring(kept, url, graph_id=None)
    with pytest.raises(CannotImport, match="tenant_key"):
        bring(kept, url, tenant="acme")
