"""Nodes of the graph `diagnosis`. Each appends its events in one transaction, with a snapshot."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from my_agent import parsing
from my_agent.context import Context
from my_agent.diagnosis import probes, replies, wishes, words
from my_agent.diagnosis.giving import Giving
from my_agent.diagnosis.looking import Looking
from my_agent.diagnosis.reading import sources
from my_agent.diagnosis.reading.sources import Given
from my_agent.diagnosis.record.events import (
    ConclusionDrawn,
    MessageAdded,
    New,
    QuestionAnswered,
    QuestionAsked,
    SessionOpened,
    new,
)
from my_agent.diagnosis.record.texts import clean
from my_agent.diagnosis.session import Session
from my_agent.diagnosis.settings import DiagnosisSettings
from my_agent.diagnosis.state import State
from my_agent.models import ModelSettings
from my_agent.understanding.replies import reply_text, unanswered

WORDS = 3900


async def intake(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Record what the user wrote: the words, and everything in them that can be read as evidence.

    Raises:
        ValueError: the run has no message with text.
        NoThreadError: the run has no thread.
    """
    told = [(str(each.id), clean(str(each.text))) for each in unanswered(state["messages"])]
    told = [(identifier, text) for identifier, text in told if text.strip()]
    if not told:
        raise ValueError("The run has no user message with text: send at least one")
    session = Session(config, runtime.execution_info)
    before = (await session.resume(state.get("place"))).state
    settings = DiagnosisSettings.from_environment()
    split = [await parsing.run(sources.split, text, tenant=session.tenant) for _, text in told]
    said = "\n".join(filter(None, (each for each, _ in split)))
    giving = Giving(before, settings)
    for _, more in split:
        giving.add(more)
    opening = " ".join(said.split())[:120] or "An incident"
    is_open = "session_opened" in before["counts"]
    first = [] if is_open else [new(SessionOpened(title=opening))]
    for (identifier, _), (text, more) in zip(told, split, strict=True):
        first.append(_message(identifier, "user", "\n".join([text, *map(_named, more)])))
    question = before["question"]
    if question is not None:
        first.append(new(QuestionAnswered(id=question["id"], text=said[:WORDS] or "[data]")))
    asked = words.probes(said, settings.max_probes)
    is_new = bool(giving.events) or _has_unread(before)
    wish = (
        "gather"
        if is_new or asked
        else await wishes.read(
            said,
            None if question is None else question["text"],
            has_sources=bool(before["sources"]),
            name=_context(runtime).model,
            config=config,
        )
    )
    after = await session.record([*first, *giving.events], giving.texts)
    return {
        "messages": [],
        "diagnosis": after,
        "place": session.place,
        "wish": wish,
        "problems": giving.problems,
        "probes": asked,
    }


def after_intake(state: State) -> Literal["gather", "ask_first", "conclude", "answer"]:
    """Return the node that answers the message."""
    wish = state["wish"]
    if wish == "gather" or wish == "conclude":
        return wish
    return "ask_first" if wish == "ask" and not state["problems"] else "answer"


async def gather(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Probe the hosts that the message names, read all sources, and record what stands out."""
    session = Session(config, runtime.execution_info)
    settings = DiagnosisSettings.from_environment()
    found = await asyncio.gather(
        *(
            probes.probe(url, settings.private_networks, settings.probe_seconds)
            for url in state["probes"]
        )
    )
    giving = Giving((await session.now()).state, settings)
    giving.add(
        Given("probe", "json", url[:200], text.count("\n") + 1, text)
        for url, text in zip(state["probes"], found, strict=True)
    )
    before = await session.record(giving.events, giving.texts) if giving.events else None
    looking = await Looking.at(session, before or (await session.now()).state)
    after = await session.record(await looking.observed())
    told = [*map(replies.probed, state["probes"], found), *giving.problems, *looking.problems()]
    return {
        "messages": [],
        "diagnosis": after,
        "place": session.place,
        "problems": [*state["problems"], *told],
    }


async def investigate(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Let rules and a model propose causes, and judge them by the lines that they quote."""
    session = Session(config, runtime.execution_info)
    before = (await session.now()).state
    looking = await Looking.at(session, before)
    done = await looking.investigated(_context(runtime).model, config)
    after = await session.record(done.events)
    return {
        "messages": [],
        "diagnosis": after,
        "place": session.place,
        "missing": done.missing,
        "model_failed": done.failed,
    }


def after_investigate(state: State) -> Literal["ask", "conclude"]:
    """Ask for what is missing, unless a cause is supported."""
    now = state["diagnosis"]
    leading = now["hypotheses"].get(now["leading"])
    supported = leading is not None and leading["status"] == "supported"
    # Each round begins with new data, so that the questions end with the user's answers.
    return "ask" if state["missing"] and not supported else "conclude"


async def ask(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Record the question for what is missing."""
    session = Session(config, runtime.execution_info)
    looking = await Looking.at(session, state["diagnosis"])
    text = replies.question(state["missing"], state["diagnosis"], looking.shown())
    return await _ask(state, session, text, state["missing"])


async def ask_first(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Record the question for something to read."""
    session = Session(config, runtime.execution_info)
    again = "question_asked" in state["diagnosis"]["counts"]
    text = replies.AGAIN if again else replies.FIRST
    return await _ask(state, session, text, ["logs, metrics or traces"])


async def wait(state: State) -> State:
    """Interrupt the run until the question is answered; `intake` reads the answer as a message."""
    question = state["diagnosis"]["question"]
    reply = interrupt(
        {
            "kind": "missing_evidence",
            "question": question["text"],
            "missing": question["missing"],
            "options": [{"id": "no", "label": replies.NO_MORE}],
        }
    )
    said = reply_text(reply)
    return {"messages": [HumanMessage(said if said.strip() else "[nothing]")]}


async def conclude(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """End the investigation. The fold decides whether a cause is named."""
    session = Session(config, runtime.execution_info)
    missing = [each[:400] for each in state.get("missing", [])][:10]
    before = (await session.now()).state
    if not before["sources"]:
        return await _say(state, session, [], replies.FIRST)
    # The text tells what the fold makes of the event, so the event comes first.
    done = new(ConclusionDrawn(missing=missing))
    after = await session.preview([done])
    looking = await Looking.at(session, after)
    text = replies.ended(
        session.id,
        after,
        looking.shown(),
        await looking.runbooks(),
        why=_why_alone(state),
    )
    return await _say(state, session, [done], text)


async def answer(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Answer a message without data from the state of the session."""
    session = Session(config, runtime.execution_info)
    now, wish = state["diagnosis"], state["wish"]
    told = {
        "thanks": replies.THANKS,
        "help": replies.HELP,
        "status": replies.status(now),
        "report": f"{replies.status(now)}\n\nThe report: `GET /diagnosis/{session.id}/report`.",
        "remark": f"{replies.REMARK}\n\n{replies.status(now)}",
        "ask": replies.FIRST,
    }[wish]
    return await _say(state, session, [], told)


def _why_alone(state: State) -> str:
    """Return why no model has looked: a sentence, or an empty text."""
    if not ModelSettings.from_environment().is_configured:
        return replies.OFFLINE
    return state.get("model_failed", "")


async def _ask(state: State, session: Session, text: str, missing: list[str]) -> State:
    number = state["diagnosis"]["counts"].get("question_asked", 0) + 1
    asked = QuestionAsked(
        id=f"q{number}", text=text[:WORDS], missing=[each[:400] for each in missing[:10]]
    )
    return await _say(state, session, [new(asked)], text)


async def _say(state: State, session: Session, events: Sequence[New], text: str) -> State:
    """Record events and the assistant's message, and add the message to the thread."""
    told = "\n\n".join([*state.get("problems", []), text])
    message = AIMessage(told, id=hashlib.sha256(f"{session.task} {told}".encode()).hexdigest()[:32])
    after = await session.record([*events, _message(str(message.id), "assistant", told)])
    return {
        "messages": [message],
        "diagnosis": after,
        "place": session.place,
        "problems": [],
    }


def _has_unread(state: dict[str, Any]) -> bool:
    """Return whether a source was added that no investigation has seen: an upload."""
    newest = max((each["seq"] for each in state["sources"].values()), default=0)
    return int(newest) > int(state["looked"])


def _named(given: Given) -> str:
    return f"[{given.kind} {given.name}, {given.lines} lines]"


def _message(identifier: str, role: Literal["user", "assistant"], text: str) -> New:
    return new(MessageAdded(id=identifier[:80], role=role, text=text.strip()[:WORDS] or "[empty]"))


def _context(runtime: Runtime[Context]) -> Context:
    # langgraph's types exclude None, but a run without a context gets None outside a server.
    return runtime.context or Context()  # type: ignore[truthy-bool]
