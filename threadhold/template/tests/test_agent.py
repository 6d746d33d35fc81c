"""The project as its clients see it. Run it with `python -m pytest`, or as a script."""

import os
import tempfile

from starlette.testclient import TestClient


def test_a_thread_keeps_its_conversation() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/test.db"
        from app import app

        with TestClient(app) as client:
            assert client.get("/hello").json() == {"hello": "world"}
            thread = client.post("/threads", json={}).json()["thread_id"]
            for count in (1, 2):
                question = {"messages": [{"role": "user", "content": "Hi"}]}
                run = {"assistant_id": "agent", "input": question}
                state = client.post(f"/threads/{thread}/runs/wait", json=run).json()
                assert f"message {count} of this thread" in state["messages"][-1]["content"]


if __name__ == "__main__":
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[1]))
    test_a_thread_keeps_its_conversation()
    print("passed")
