"""Lessons that a `kill -9` cuts off: what was said is still there, and said once."""

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
from tests.support.tutor import RIGHT, WRONG, asked, found, of_endpoint, teach, write_config

pytestmark = pytest.mark.usefixtures("each_database")

HAS = ("agreement", "has", "have")


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
            **of_endpoint(endpoint),
        },
    )
    try:
        yield victim
    finally:
        victim.close()


@pytest.fixture
def school(launched: Victim, endpoint: OpenAIServer) -> Iterator[Victim]:
    """A server that has not been started, on an empty database, and a model that says yes."""
    launched.erase()
    endpoint.reset()
    teach(endpoint, reply=say("Yes."), review=found(HAS))
    yield launched
    launched.stop()


def lesson(school: Victim, message: str, **body: Any) -> str:
    """A message that is answered; its thread."""
    answer = school.client.post("/tutor/chat", json={"message": message, **body})
    assert answer.text.count("event: end") == 1, answer.text
    return thread_of(answer.text)


def thread_of(events: str) -> str:
    """The thread that the first event names."""
    first = next(line for line in events.splitlines() if line.startswith("data: "))
    return str(json.loads(first.removeprefix("data: "))["thread_id"])


def talk(school: Victim, thread: str) -> list[tuple[str, str]]:
    kept = school.get(f"/tutor/threads/{thread}/messages")["messages"]
    return [(each["role"], each["content"]) for each in kept]


def corrected(school: Victim, thread: str) -> list[str]:
    kept = school.get(f"/tutor/threads/{thread}/corrections")["corrections"]
    return [each["corrected"] for each in kept]


def test_a_lesson_goes_on_after_the_servers_death(school: Victim) -> None:
    school.start()
    thread = lesson(school, WRONG)
    views = [f"/tutor/threads/{thread}/{what}" for what in ("messages", "corrections", "summary")]
    before = [school.get(view) for view in views]
    school.kill()
    school.start()
    assert [school.get(view) for view in views] == before
    assert lesson(school, WRONG, thread_id=thread) == thread
    assert talk(school, thread) == [("user", WRONG), ("assistant", "Yes.")] * 2
    assert corrected(school, thread) == [RIGHT] * 2
    assert school.get(views[-1])["corrections"] == 2


def test_an_answer_that_was_cut_off_is_given_once(school: Victim, endpoint: OpenAIServer) -> None:
    school.start()
    thread = lesson(school, "Hello, I has a dog.")
    calls = len(asked(endpoint))
    gate = endpoint.gate()
    teach(endpoint, reply=say("one two three", gate=gate), review=found(HAS))
    gate.open()
    heard: list[str] = []
    broken = threading.Event()

    def listen() -> None:
        body = {"message": WRONG, "thread_id": thread}
        try:
            with school.client.stream("POST", "/tutor/chat", json=body) as answer:
                heard.extend(answer.iter_text())
        except httpx.TransportError:
            broken.set()

    listener = threading.Thread(target=listen)
    listener.start()
    # It has begun to speak, and waits for the gate.
    school.await_(lambda: "one " in "".join(heard))
    school.kill()
    listener.join()
    assert broken.is_set()
    assert "event: end" not in "".join(heard)
    teach(endpoint, reply=say("four five"), review=found(HAS))
    school.start()
    school.await_(lambda: school.get(f"/threads/{thread}")["status"] == "idle")
    assert len(asked(endpoint)) == calls + 2
    assert talk(school, thread)[2:] == [("user", WRONG), ("assistant", "four five")]
    assert corrected(school, thread) == ["Hello, I have a dog.", RIGHT]
    assert school.findings() == []
