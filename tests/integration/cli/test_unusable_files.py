"""Files that cannot be a database: each command refuses them with one sentence."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import GRAPHS, environment, free_port, ran, threadhold


def command(name: str, url: str, folder: Path) -> list[str]:
    options = ["--database-url", url]
    if name == "serve":
        options += ["--config", str(GRAPHS / "langgraph.json"), "--port", str(free_port())]
    elif name == "ingest":
        (folder / "note.md").write_text("# A note\n\nIt says something.")
        options.insert(0, str(folder / "note.md"))
    return threadhold(name, *options)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Check that a command failed with one named error. Return its output."""
    said = done.stdout + done.stderr
    assert done.returncode in (1, 3), said
    assert "Traceback" not in said
    assert (said.count("Error: ") == 1) or '"level": "error"' in said
    return said


def without_room(line: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command whose files may have 8 blocks, of 512 bytes or 1 KB each."""
    limited = f"ulimit -f 8; exec {shlex.join(line)}"
    return subprocess.run(
        ["sh", "-c", limited],
        check=False,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", ["serve", "migrate", "ingest"])
@pytest.mark.parametrize("place", ["no folder", "read-only", "a folder", "another file"])
def test_unusable_database_file_is_refused_with_one_sentence(
    name: str, place: str, tmp_path: Path
) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"some": "file" * 500}))
    (tmp_path / "folder").mkdir()
    path = {
        "no folder": tmp_path / "other.json" / "x.db",
        "read-only": Path("/proc/x.db"),
        "a folder": tmp_path / "folder",
        "another file": tmp_path / "other.json",
    }[place]
    line = command(name, f"sqlite:///{path}", tmp_path)
    assert "cannot be used" in refused(ran(line, tmp_path, environment()))
    assert json.loads((tmp_path / "other.json").read_text()) == {"some": "file" * 500}


@pytest.mark.parametrize("name", ["serve", "migrate", "ingest"])
def test_full_disk_is_refused_with_one_sentence(name: str, tmp_path: Path) -> None:
    line = command(name, f"sqlite:///{tmp_path}/x.db", tmp_path)
    assert "disk of the database is full" in refused(without_room(line, tmp_path))


def test_backup_on_a_full_disk_leaves_no_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    assert (
        ran(threadhold("migrate", "--database-url", url), tmp_path, environment()).returncode == 0
    )
    (tmp_path / "out").mkdir()
    for place in (tmp_path / "out" / "copy.db", "/proc/copy.db"):
        done = without_room(threadhold("backup", place, "--database-url", url), tmp_path)
        assert "Cannot back up" in refused(done)
    assert list((tmp_path / "out").iterdir()) == []
