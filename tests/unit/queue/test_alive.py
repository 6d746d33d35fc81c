"""The files that prove the end of a process."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from langgraph_runtime_sql import alive
from tests.support.processes import environment

HOLDING = """
import sys
from langgraph_runtime_sql import alive
alive.hold(sys.argv[1])
alive.hold(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return alive.folder()


@contextmanager
def process(name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLDING, name]
    env = environment(TMPDIR=str(folder.parent))
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as found:
        assert found.stdout is not None
        try:
            assert found.stdout.readline() == b"held\n"
            yield found
        finally:
            found.kill()


def test_only_a_process_that_has_ended_is_known_to_have_ended(folder: Path) -> None:
    with process("other", folder) as other:
        assert not alive.has_ended("other")
        other.send_signal(signal.SIGSTOP)
        assert not alive.has_ended("other")
        other.kill()
        other.wait()
        # Looking changes nothing.
        assert alive.has_ended("other")
        assert alive.has_ended("other")
    alive.hold("this")
    assert not alive.has_ended("this")


def test_process_without_a_file_here_may_live(folder: Path) -> None:
    alive.hold("this-too")
    (folder.parent / "secret").write_text("")
    for name in ("unknown", "", "../secret", ".", "x" * 65):
        assert not alive.has_ended(name)


def test_folder_of_others_is_not_used(folder: Path) -> None:
    folder.mkdir()
    (folder / "other").write_text(alive.boot())
    assert alive.has_ended("other")
    folder.chmod(0o777)
    assert not alive.has_ended("other")
    alive.hold("here")
    assert not (folder / "here").exists()


def test_process_of_another_machine_may_live(folder: Path) -> None:
    """Machines may share a folder, and a lock on another machine's file proves nothing."""
    alive.hold("that")
    (folder / "other").write_text("another boot")
    assert not alive.has_ended("other")


def test_temporary_files_need_not_be_writable(folder: Path) -> None:
    folder.write_text("")
    alive.hold("nowhere")
    assert not alive.has_ended("nowhere")


def test_files_of_processes_that_ended_long_ago_are_deleted(folder: Path) -> None:
    with process("living", folder), process("dead", folder) as dead:
        dead.kill()
        dead.wait()
        (folder / "recent").write_text("")
        long_ago = time.time() - 2 * alive.OLD_SECONDS
        for name in ("living", "dead"):
            os.utime(folder / name, (long_ago, long_ago))
        alive.hold("new")
        assert sorted(path.name for path in folder.iterdir()) == ["living", "new", "recent"]
