"""The heartbeat of a worker: a file that is touched while its event loop turns."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.databases import PATIENCE
from threadhold.serving import heartbeat
from threadhold.serving.heartbeat import Heartbeat, NoHeartbeat


async def test_heartbeat_touches_its_file_while_the_event_loop_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "SECONDS", 0.01)
    path = tmp_path / "heartbeat"
    Heartbeat(path).start()
    async with asyncio.timeout(PATIENCE):
        for _ in range(3):
            os.utime(path, (0, 0))
            while path.stat().st_mtime == 0:
                await asyncio.sleep(0.01)
        # The heartbeat survives a removed file.
        path.unlink()
        while not path.exists():
            await asyncio.sleep(0.01)


def test_heartbeat_file_of_an_earlier_process_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    path.touch()
    Heartbeat(path)
    assert not path.exists()


@pytest.mark.parametrize("name", ["missing/heartbeat", "file/heartbeat", "folder"])
def test_unwritable_heartbeat_file_is_named_in_the_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(NoHeartbeat, match=f"--heartbeat .*{name}"):
        Heartbeat(tmp_path / name)
