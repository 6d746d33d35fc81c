"""A damaged conversation is an error that names it, not a shorter conversation."""

from pathlib import Path

import pytest

from tests.support import databases
from tests.support.served import client, served

pytestmark = pytest.mark.usefixtures("each_database")


async def test_damaged_checkpoint_is_named_to_its_reader(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        async with client(server) as api:
            thread = await api.thread()
            said = [{"role": "user", "content": f"{n} " * 300, "id": f"m{n}"} for n in range(60)]
            run = await api.run(thread, "echo", {"messages": said})
            assert await api.ended(thread, run) == "success"
    databases.execute(tmp_path / "data.db", "DELETE FROM thread_checkpoints WHERE base_id IS NULL")
    # A process that has not read the conversation before.
    with served(tmp_path) as server:
        async with client(server) as api:
            newest = await api.http.post(
                f"/threads/{thread}/runs/wait", json={"assistant_id": "echo"}
            )
            answers = [
                await api.http.get(path)
                for path in (f"/threads/{thread}", f"/threads/{thread}/state")
            ]
            other = await api.thread()
            listed = await api.post("/threads/search", {})
    assert {each["thread_id"]: each["values"] for each in listed} == {thread: None, other: None}
    assert "messages" not in newest.json()
    for answer in answers:
        assert answer.status_code == 500
        assert f"of thread {thread} is damaged" in answer.json()["detail"]
        assert "is patched against, is missing" in answer.json()["detail"]
