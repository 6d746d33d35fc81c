"""`GET /threads/find`: a person finds conversations by words that were said in them."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from langgraph_runtime_sql.ops.threads import finding
from langgraph_runtime_sql.ops.threads.threads import Threads
from tests.support import runtime
from tests.support.operations import row
from tests.support.processes import GRAPHS
from tests.support.served import Api, client, served

pytestmark = pytest.mark.usefixtures("each_database")


async def say(api: Api, text: str, **metadata: Any) -> str:
    """Return a thread in which a text was said."""
    thread = await api.thread(**metadata)
    message = {"type": "human", "content": [{"type": "text", "text": text}], "id": "data"}
    await api.ended(thread, await api.run(thread, "echo", {"messages": [message]}))
    return thread


async def find(api: Api, text: str) -> Any:
    answer = await api.http.get("/threads/find", params={"text": text})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_words_are_found_in_titles_and_states_of_the_caller_alone(tmp_path: Path) -> None:
    with served(tmp_path, GRAPHS / "langgraph.auth.json") as server:
        async with (
            client(server, **{"x-user": "a"}) as ada,
            client(server, **{"x-user": "b"}) as bob,
        ):
            long = await say(ada, "word " * 20_000 + "then the Straße to Porto, by night")
            title = await say(ada, "nothing", title="A trip to Porto")
            both = await say(ada, "by train", title="Porto")
            await say(bob, "Porto by night")
            found = await find(ada, "PORTO")
            assert [each["thread_id"] for each in found["threads"]] == [both, title, long]
            assert found["is_complete"]
            shown = {each["thread_id"]: each["excerpt"] for each in found["threads"]}
            assert shown[title] is None
            assert "Straße to Porto, by night" in shown[long]
            assert len(shown[long]) <= finding.EXCERPT + 2
            # All words, in any order, of the title and the state together.
            found = await find(ada, "train porto")
            assert [(each["thread_id"], each["excerpt"]) for each in found["threads"]] == [
                (both, "by train")
            ]
            assert (await find(ada, "strasse"))["threads"][0]["thread_id"] == long
            # Not what nobody reads, such as ids.
            assert (await find(ada, "data"))["threads"] == []
            for text in ("", " ", "x" * (finding.LONGEST + 1)):
                answer = await ada.http.get("/threads/find", params={"text": text})
                assert answer.status_code == 422
            assert json.loads(answer.text)["detail"]


@pytest.mark.usefixtures("packages", "settings")
async def test_only_the_newest_threads_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the bounds are small ones."""
    monkeypatch.setattr(finding, "PAGE", 2)
    monkeypatch.setattr(finding, "MOST_READ", 4)
    async with runtime.opened(tmp_path / "finding.db"):
        for number in range(6):
            metadata = {"title": f"Plan {number}"}
            await row(Threads.put(None, uuid4(), metadata=metadata, if_exists="raise"))
        found = await finding.find("plan")
        titles = [each["metadata"]["title"] for each in found["threads"]]
        assert titles == [f"Plan {number}" for number in (5, 4, 3, 2)]
        assert not found["is_complete"]
