"""The graph `tutor` through the plain LangGraph API, as Studio and useStream use it."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from my_agent.tutor import prompts
from tests.support.openai_replies import Failure, say
from tests.support.openai_server import OpenAIServer
from tests.support.processes import Running
from tests.support.tutor import (
    RIGHT,
    WRONG,
    asked,
    found,
    is_review,
    of_endpoint,
    teach,
    tutoring,
)

pytestmark = pytest.mark.usefixtures("each_database")

HAS = ("agreement", "has", "have")


@pytest.fixture(scope="module")
def online(
    each_database: str, endpoint: OpenAIServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    names = {"OPENAI_ALLOWED_MODELS": "talker,checker,both"}
    with tutoring(tmp_path_factory.mktemp("tutor"), **of_endpoint(endpoint), **names) as server:
        yield server


@pytest.fixture
def model(endpoint: OpenAIServer) -> OpenAIServer:
    """Return the server's scripted endpoint, reset for each test."""
    endpoint.reset()
    teach(endpoint)
    return endpoint


@pytest.fixture
async def client(online: Running) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=online.url) as client:
        yield client


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text, **more}]}


async def new_thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


async def values(client: LangGraphClient, thread: str) -> Any:
    return (await client.threads.get_state(thread))["values"]


async def failed(client: LangGraphClient, thread: str, input: Any) -> str:
    """Start a run that fails, and return its error message."""
    answer: Any = await client.runs.wait(thread, "tutor", input=input, raise_error=False)
    return str(answer["__error__"]["message"])


async def test_run_stores_messages_corrections_and_thread_id(
    client: LangGraphClient, model: OpenAIServer
) -> None:
    thread = await new_thread(client)
    kept: Any = await client.runs.wait(thread, "tutor", input=message(WRONG))
    assert kept.keys() == {"messages", "corrections", "thread_id"}
    assert kept["thread_id"] == thread
    assert [each["type"] for each in kept["messages"]] == ["human", "ai"]
    for each in kept["messages"]:
        assert datetime.fromisoformat(each["additional_kwargs"]["timestamp"]).tzinfo
    [correction] = kept["corrections"]
    assert correction["message_id"] == kept["messages"][0]["id"]
    assert correction["corrected"] == RIGHT
    # The model gets no timestamps.
    system, said = asked(model)[0]["messages"]
    assert (system["role"], said) == ("system", {"role": "user", "content": WRONG})
    assert system["content"].startswith(prompts.SYSTEM)


async def test_only_tokens_of_the_answer_are_streamed(
    client: LangGraphClient, model: OpenAIServer
) -> None:
    teach(model, reply=say("one two three"), review=found(HAS))
    parts = [
        part
        async for part in client.runs.stream(
            None, "tutor", input=message(WRONG), stream_mode=["messages-tuple", "updates"]
        )
    ]
    said = [part.data[0]["content"] for part in parts if part.event == "messages"]
    assert "".join(said) == "one two three"
    updates = [node for part in parts if part.event == "updates" for node in part.data]
    assert sorted(updates) == ["admit", "correct", "remember", "reply"]
    [request] = asked(model, review=True)
    schema = request["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"]) == ("review", True)


async def test_context_sets_models_and_prompt(client: LangGraphClient, model: OpenAIServer) -> None:
    context = {"model": "talker", "correction_model": "checker", "system_prompt": "Rhyme."}
    await client.runs.wait(None, "tutor", input=message("Hi."), context=context)
    await client.runs.wait(None, "tutor", input=message("Hi."), context={"model": "both"})
    assert [each["model"] for each in asked(model)] == ["talker", "both"]
    assert [each["model"] for each in asked(model, review=True)] == ["checker", "both"]
    assert asked(model)[0]["messages"][0]["content"].startswith("Rhyme.")
    for name in ("model", "correction_model"):
        refused: Any = await client.runs.wait(
            None, "tutor", input=message("Hi."), context={name: "expensive"}, raise_error=False
        )
        assert refused["__error__"]["error"] == "ModelNotAllowedError"
    assert "expensive" not in {each["model"] for each in model.bodies}


@pytest.mark.parametrize(
    ("input", "cause"),
    [
        ({"messages": []}, "no user message with text"),
        (message(""), "no user message with text"),
        (message("x" * 4001), "too long: at most 4000"),
    ],
)
async def test_rejected_message_leaves_thread_unchanged(
    client: LangGraphClient, model: OpenAIServer, input: Any, cause: str
) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "tutor", input=message("Hello."))
    before = await values(client, thread)
    model.reset()
    assert cause in await failed(client, thread, input)
    assert (await values(client, thread))["messages"] == before["messages"]
    assert model.requests == []
    teach(model)
    kept: Any = await client.runs.wait(thread, "tutor", input=message("Still there?"))
    assert [each["type"] for each in kept["messages"]] == ["human", "ai"] * 2


async def test_continued_run_duplicates_nothing(
    client: LangGraphClient, model: OpenAIServer
) -> None:
    model.fallback = lambda request: (
        found(HAS) if is_review(request) else Failure(status=500, message="down")
    )
    thread = await new_thread(client)
    assert "endpoint failed" in await failed(client, thread, message(WRONG, id="m1"))
    teach(model, review=found(HAS))
    kept: Any = await client.runs.wait(thread, "tutor", input=None)
    for _ in range(2):
        assert [each["type"] for each in kept["messages"]] == ["human", "ai"]
        assert [each["message_id"] for each in kept["corrections"]] == ["m1"]
        # No node is left to run.
        await client.runs.wait(thread, "tutor", input=None)
        kept = await values(client, thread)


async def test_regenerated_answer_replaces_its_correction(
    client: LangGraphClient, model: OpenAIServer
) -> None:
    teach(model, review=found(HAS))
    thread = await new_thread(client)
    await client.runs.wait(thread, "tutor", input=message(WRONG, id="m1"))
    [before] = [
        state
        for state in await client.threads.get_history(thread)
        if sorted(state["next"]) == ["correct", "reply"]
    ]
    teach(model, reply=say("Again."), review=found(("word_choice", "apple", "pear")))
    kept: Any = await client.runs.wait(
        thread, "tutor", input=None, checkpoint_id=before["checkpoint"]["checkpoint_id"]
    )
    assert [each["content"] for each in kept["messages"]] == [WRONG, "Again."]
    assert [each["corrected"] for each in kept["corrections"]] == ["I has a pear."]


async def test_each_message_of_one_input_is_corrected(
    client: LangGraphClient, model: OpenAIServer
) -> None:
    sent = [{"role": "user", "content": text} for text in (WRONG, "Yes.", "He have a dog.")]
    kept: Any = await client.runs.wait(None, "tutor", input={"messages": sent})
    assert [each["corrected"] for each in kept["corrections"]] == [RIGHT, "He has a dog."]
    assert len(kept["messages"]) == 4


@pytest.mark.parametrize("wrong", [{"a": 1}, {"message_id": "m1"}, "text", 5])
async def test_invalid_corrections_state_is_rejected(
    client: LangGraphClient, model: OpenAIServer, wrong: Any
) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "tutor", input=message(WRONG))
    before = await values(client, thread)
    with pytest.raises(APIStatusError) as refused:
        await client.threads.update_state(thread, {"corrections": [wrong]}, as_node="correct")
    assert 400 <= refused.value.status_code < 500
    assert await values(client, thread) == before


TURNS, LONG = 200, 1200


async def test_thread_of_200_turns_is_cut_to_the_window(
    client: LangGraphClient, model: OpenAIServer, online: Running
) -> None:
    thread = await new_thread(client)
    seed = [
        {"role": role, "content": f"{role} {turn}. ".ljust(LONG if turn % 50 > 40 else 40, "z")}
        for turn in range(TURNS)
        for role in ("user", "assistant")
    ]
    # The first run of a thread sets its graph id.
    await client.runs.wait(thread, "tutor", input=message("Hello."))
    await client.threads.update_state(thread, {"messages": seed}, as_node="reply")
    model.reset()
    for number in range(3):
        teach(model, reply=say(f"Answer {number}."))
        await client.runs.wait(thread, "tutor", input=message(f"Question {number}."))
    kept = await values(client, thread)
    assert len(kept["messages"]) == 2 + 2 * TURNS + 6
    for number, request in enumerate(asked(model)):
        system, *read = request["messages"]
        assert system["role"] == "system"
        assert read[-1] == {"role": "user", "content": f"Question {number}."}
        assert read[0]["role"] == "user"
        # The 20 turns before this message, if they have at most 24,000 characters.
        assert 20 < len(read) <= 41
        assert sum(len(each["content"]) for each in read) <= 24_000
        earlier = [each["content"] for each in kept["messages"][: 2 + 2 * TURNS + 2 * number]]
        assert [each["content"] for each in read[:-1]] == earlier[-(len(read) - 1) :]
    # The correcting model reads no history.
    assert all(len(each["messages"]) <= 3 for each in asked(model, review=True))


async def test_schemas_describe_the_input(client: LangGraphClient) -> None:
    [assistant] = await client.assistants.search(
        graph_id="tutor", metadata={"created_by": "system"}
    )
    schemas: Any = await client.assistants.get_schemas(assistant["assistant_id"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    assert set(schemas["state_schema"]["properties"]) == {"messages", "corrections", "thread_id"}
    assert schemas["context_schema"]["properties"].keys() == {
        "model",
        "correction_model",
        "system_prompt",
    }
