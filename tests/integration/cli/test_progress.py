"""Each command that may take long shows its progress on stderr, and leaves stdout to scripts."""

import os
import pty
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from langgraph_runtime_sql.progress import Progress
from tests.support import databases
from tests.support.processes import ROOT, environment, ran, threadhold
from threadhold.admin.backup import STEP_PAGES, back_up

pytestmark = pytest.mark.usefixtures("each_database")

ERASE = "\r\x1b[K"


class Said(NamedTuple):
    """What a command wrote."""

    out: str
    err: str


Run = Callable[..., Said]


def piped(*arguments: str | Path) -> Said:
    done = ran(threadhold(*arguments), ROOT, environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return Said(done.stdout, done.stderr)


def on_terminal(*arguments: str | Path) -> Said:
    """Run a command whose stderr is a terminal, and whose stdout is read by a script."""
    ours, theirs = pty.openpty()
    pieces: list[bytes] = []

    def read() -> None:
        # Linux ends the reading of a terminal that nothing has open any more by an error.
        with open(ours, "rb", buffering=0, closefd=False) as screen:
            while True:
                try:
                    piece = screen.read(65536)
                except OSError:
                    return
                if not piece:
                    return
                pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        env = environment(TERM="xterm")
        done = ran(threadhold(*arguments), ROOT, env, terminal=os.ttyname(theirs))
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    screen = b"".join(pieces).decode()
    assert done.returncode == 0, screen
    return Said(done.stdout, screen)


def check_line(said: Said, run: Run, *phases: str) -> None:
    """Check that the phases were shown, and that nothing of it is in stdout."""
    assert "\x1b" not in said.out and " %)" not in said.out
    if run is on_terminal:
        assert [phase for phase in phases if f"{ERASE}{phase}" not in said.err] == []
        # One line that is rewritten, and gone at the end.
        assert "\n" not in said.err
        assert said.err.endswith(ERASE)
    else:
        lines = said.err.splitlines()
        assert [
            phase for phase in phases if not any(line.startswith(phase) for line in lines)
        ] == []
        # A busy machine has lines on the way, too.
        ends = [line for line in lines if "(100 %)" in line]
        assert len(ends) >= len(phases)
        assert all(" %)" in line for line in lines)
        assert all("(100 %) in 0:" in line for line in ends)
        assert "\x1b" not in said.err and "\r" not in said.err


@pytest.fixture(params=[piped, on_terminal], ids=["piped", "terminal"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PATH", os.pathsep.join([str(databases.programs()), os.environ["PATH"]]))
    found: Run = request.param
    return found


def add_thread(path: Path) -> None:
    columns = "thread_id, created_at, updated_at, state_updated_at, metadata, config, status"
    now = databases.date(1_700_000_000)
    databases.execute(
        path,
        f"INSERT INTO threads ({columns}, interrupts) VALUES (?, ?, ?, ?, '{{}}', '{{}}', 'idle', '{{}}')",
        *("00000000-0000-4000-8000-000000000000", now, now, now),
    )


def test_commands_of_a_database_show_their_progress(
    tmp_path: Path, each_database: str, run: Run
) -> None:
    path, copy = tmp_path / "data.db", tmp_path / "copy"
    url = ["--database-url", databases.empty(path)]
    # A new database runs no script.
    migrated = run("migrate", *url)
    assert migrated.out.endswith("is up to date\n") and migrated.out.count("\n") == 1
    assert migrated.err == ""
    assert run("migrate", *url) == migrated

    add_thread(path)
    examined = run("doctor", *url)
    check_line(examined, run, "Examining metadata: 1 of 1 threads", "Examining: ")
    assert examined.out.endswith("nothing is wrong\n") and examined.out.count("\n") == 1

    saved = run("backup", *url, copy)
    check_line(saved, run, "Copying: " if each_database == "sqlite" else "Dumping: ")
    assert saved.out == f"{copy}: {copy.stat().st_size:,} bytes, integrity verified\n"

    other = databases.empty(tmp_path / "other.db")
    restored = run("restore", "--database-url", other, copy)
    check_line(restored, run, "Copying: " if each_database == "sqlite" else "Restoring: ")
    assert restored.out.splitlines()[0].endswith(f"restored from {copy}")


@pytest.mark.only("postgresql")
def test_a_move_shows_its_phases(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "data.db"
    with databases.on("sqlite"):
        file = databases.url(source)
        piped("migrate", "--database-url", file)
        add_thread(source)
    moved = run("migrate", "--from", file, "--to", databases.empty(tmp_path / "to"))
    check_line(moved, run, "Checking: ", "Moving: ", "Comparing: ")
    assert moved.out.splitlines()[-1].startswith("Moved and compared: 1 rows.")


def test_ingest_shows_its_progress(tmp_path: Path, run: Run) -> None:
    url = ["--database-url", databases.url(tmp_path / "data.db")]
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "note.md").write_text("# A note\n\nIt says something.")
    read = run("ingest", *url, folder)
    check_line(read, run, "Reading: ")
    assert (
        read.out == "1 added, 0 changed, 0 unchanged, 0 removed, 0 skipped; 1 passages embedded\n"
    )
    register = ROOT / "my_agent/companies/reference/made_up_register.csv"
    loaded = run("ingest", *url, register)
    check_line(loaded, run, "Reading: ")
    assert loaded.out.startswith(f"{register}: ") and loaded.out.count("\n") == 1


@pytest.mark.only("sqlite")
def test_a_backup_in_many_steps_is_one_snapshot(tmp_path: Path) -> None:
    """Between two steps another connection writes; the copy has nothing of it."""
    path, copy = tmp_path / "data.db", tmp_path / "copy"
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("CREATE TABLE t (body BLOB)")
        raw.execute("INSERT INTO t VALUES (zeroblob(?))", (3 * STEP_PAGES * 4096,))
        done: list[int] = []

        def write(progress: Progress) -> None:
            if progress.phase == "Copying":
                done.append(progress.done)
                raw.execute("INSERT INTO t VALUES ('late')")

        back_up(databases.url(path), copy, report=write)
        assert len(done) > 3 and done == sorted(done)
        assert raw.execute("SELECT count(*) FROM t").fetchone() == (len(done) + 1,)
    with closing(sqlite3.connect(copy)) as found:
        assert found.execute("SELECT count(*) FROM t").fetchone() == (1,)
