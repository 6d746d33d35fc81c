"""Lessons that `kill -9` interrupts: each message is kept exactly once."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.chaos.victim import Victim
from tests.support import databases
from tests.support.openai_replies import say
from tests.support.openai_server import OpenAIServer
from tests.support.tutor import RIGHT, WRONG, asked, of_endpoint, teach, write_config

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture(scope="module")
def launched(
    each_database: str, endpoint: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Victim]:
    folder = tmp_path_factory.mktemp("tutor")
    victim = Victim(
        folder,
        {
            "LANGGRAPH_JSON": str(write_config(folder)),
            "DATABASE_URL": databases.url(folder / "chaos.db"),
            # The first check after a start is slow on a busy machine.
            "TUTOR_CHECK_SECONDS": "120",
            **of_endpoint(endpoint),
        },
    )
    try:
        yield victim
    finally:
        victim.close()


@pytest.fixture
def school(launched: Victim, endpoint: OpenAIServer) -> Iterator[Victim]:
    """Give a stopped server on an empty database, with a model that answers "Yes."."""
    launched.erase()
    endpoint.reset()
    teach(endpoint, reply=say("Yes."))
    yield launched
    launched.stop()


def lesson(school: Victim, message: str, **body: Any) -> str:
    """Send a message, check that it is answered, and return its thread."""
    answer = school.client.post("/tutor/chat", json={"message": message, **body})
    assert answer.text.count("event: end") == 1, answer.text
    return thread_of(answer.text)


def thread_of(events: str) -> str:
    """Return the thread that the first event names."""
    first = next(line for line in events.splitlines() if line.startswith("data: "))
    return str(json.loads(first.removeprefix("data: "))["thread_id"])


def begin(school: Victim) -> None:
    """Start the server, and wait until messages are checked in time: the first ones may not be."""
    school.start()
    school.await_(lambda: bool(corrections(school, lesson(school, WRONG))))


def messages(school: Victim, thread: str) -> list[tuple[str, str]]:
    kept = school.get(f"/tutor/threads/{thread}/messages")["messages"]
    return [(each["role"], each["content"]) for each in kept]


def corrections(school: Victim, thread: str) -> list[str]:
    kept = school.get(f"/tutor/threads/{thread}/corrections")["corrections"]
    return [each["corrected"] for each in kept]


def test_lesson_continues_after_a_kill(school: Victim) -> None:
    begin(school)
    thread = lesson(school, WRONG)
    views = [f"/tutor/threads/{thread}/{what}" for what in ("messages", "corrections", "summary")]
    before = [school.get(view) for view in views]
    school.kill()
    begin(school)
    assert [school.get(view) for view in views] == before
    assert lesson(school, WRONG, thread_id=thread) == thread
    assert messages(school, thread) == [("user", WRONG), ("assistant", "Yes.")] * 2
    assert corrections(school, thread) == [RIGHT] * 2
    assert school.get(views[-1])["corrections"] == 2


def test_interrupted_answer_is_given_once(school: Victim, endpoint: OpenAIServer) -> None:
    begin(school)
    thread = lesson(school, "Hello, I has a dog.")
    calls = len(asked(endpoint))
    gate = endpoint.gate()
    teach(endpoint, reply=say("one two three", gate=gate))
    gate.open()
    received: list[str] = []
    broken = threading.Event()

    def listen() -> None:
        body = {"message": WRONG, "thread_id": thread}
        try:
            with school.client.stream("POST", "/tutor/chat", json=body) as answer:
                received.extend(answer.iter_text())
        except httpx.TransportError:
            broken.set()

    listener = threading.Thread(target=listen)
    listener.start()
    # The model has begun its answer and waits for the gate.
    school.await_(lambda: "one " in "".join(received))
    school.kill()
    listener.join()
    assert broken.is_set()
    assert "event: end" not in "".join(received)
    teach(endpoint, reply=say("four five"))
    school.start()
    school.await_(lambda: school.get(f"/threads/{thread}")["status"] == "idle")
    assert len(asked(endpoint)) == calls + 2
    assert messages(school, thread)[2:] == [("user", WRONG), ("assistant", "four five")]
    assert corrections(school, thread) == ["Hello, I have a dog.", RIGHT]
    assert school.findings() == []
