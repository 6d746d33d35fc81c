"""Nodes of the graph `diagnosis`. Each appends its events in one transaction, with a snapshot."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from my_agent import parsing
from my_agent.diagnosis import investigation, model, probes, replies, words
from my_agent.diagnosis.analysis import signs
from my_agent.diagnosis.analysis.candidates import Candidate
from my_agent.diagnosis.analysis.signs import Picture
from my_agent.diagnosis.context import Context
from my_agent.diagnosis.events import (
    ConclusionDrawn,
    MessageAdded,
    New,
    QuestionAnswered,
    QuestionAsked,
    SessionOpened,
    SourceAdded,
    new,
)
from my_agent.diagnosis.fold import SOURCES
from my_agent.diagnosis.fold import State as Folded
from my_agent.diagnosis.reading import reader, sources
from my_agent.diagnosis.reading.sources import Given
from my_agent.diagnosis.session import Session
from my_agent.diagnosis.settings import DiagnosisSettings
from my_agent.diagnosis.state import State
from my_agent.models import ModelSettings
from my_agent.turns import TenantThreads
from my_agent.understanding.replies import unanswered

WORDS = 3900
_NAMED = "{}\n{}"
# A probe has no dates, and so needs no year.
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
# Weighing what was read takes the processor for up to a second: tenants take turns.
_TURNS = TenantThreads("diagnosis")


async def intake(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Record what the user wrote: the words, and each log, metrics file or trace in them.

    Raises:
        ValueError: the run has no message with text.
        NoThreadError: the run has no thread.
    """
    waiting = unanswered(state["messages"])
    told = [(str(each.id), _clean(str(each.text))) for each in waiting]
    told = [(identifier, text) for identifier, text in told if text.strip()]
    if not told:
        raise ValueError("The run has no user message with text: send at least one")
    session = Session(config, runtime.execution_info)
    before = (await session.now()).state
    settings = DiagnosisSettings.from_environment()
    split = [await parsing.run(sources.split, text, tenant=session.tenant) for _, text in told]
    said = "\n".join(filter(None, (each for each, _ in split)))
    given = [each for _, more in split for each in more]
    events, problems = _added(before, given, settings)
    opening = " ".join(said.split())[:120] or "An incident"
    is_open = "session_opened" in before["counts"]
    first = [] if is_open else [new(SessionOpened(title=opening))]
    for (identifier, _), (text, more) in zip(told, split, strict=True):
        shown = "\n".join(
            [text, *(f"[{each.kind} {each.name}, {each.lines} lines]" for each in more)]
        )
        first.append(_message(identifier, "user", shown))
    if before["question"] is not None:
        answer = said[:WORDS] or "[data]"
        first.append(new(QuestionAnswered(id=before["question"]["id"], text=answer)))
    asked = words.probes(said, settings.max_probes)
    has_sources = bool(before["sources"] or events)
    wish = "gather" if events or asked else words.wish(said, has_sources=has_sources)
    after = await session.record([*first, *events])
    return {
        "messages": [],
        "diagnosis": after,
        "wish": wish,
        "problems": problems,
        "probes": asked,
    }


def after_intake(state: State) -> Literal["gather", "ask_first", "conclude", "answer"]:
    """Return the node that answers the message."""
    wish = state["wish"]
    if wish == "gather" or wish == "conclude":
        return wish
    return "ask_first" if wish == "ask" and not state["problems"] else "answer"


async def gather(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Probe the hosts that the message names, and record what is abnormal in all sources."""
    session = Session(config, runtime.execution_info)
    settings = DiagnosisSettings.from_environment()
    found = await asyncio.gather(
        *(
            probes.probe(url, settings.private_networks, settings.probe_seconds)
            for url in state["probes"]
        )
    )
    made = [
        Given("probe", "json", url[:200], text.count("\n") + 1, text)
        for url, text in zip(state["probes"], found, strict=True)
    ]
    before = (await session.now()).state
    added, problems = _added(before, made, settings)
    read = await session.sources(before)
    probed = [
        reader.Source(
            each.data["id"], "probe", "json", each.data["name"], each.data["text"], _NEVER
        )
        for each in added
    ]
    picture, texts = await _look(session, [*read, *probed])
    events = await _TURNS.run(session.tenant, lambda: investigation.observe(before, picture, texts))
    after = await session.record([*added, *events])
    told = [*state["problems"], *map(replies.probed, state["probes"], found), *problems]
    return {"messages": [], "diagnosis": after, "problems": told}


async def propose(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Propose the leading hypotheses: by rules, and one by the model if there is one."""
    session = Session(config, runtime.execution_info)
    before = (await session.now()).state
    picture, _ = await _look(session, await session.sources(before))
    proposed: list[Candidate] | None = None
    if picture.signs:
        name = _context(runtime).model
        proposed = await model.propose(picture, before["title"], name, config)
    events = await _TURNS.run(
        session.tenant, lambda: investigation.propose(before, picture, proposed or [])
    )
    after = await session.record(events)
    return {"messages": [], "diagnosis": after, "model_used": proposed is not None}


async def investigate(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Test each hypothesis, and record the evidence with its place in the sources."""
    session = Session(config, runtime.execution_info)
    before = (await session.now()).state
    picture, texts = await _look(session, await session.sources(before))
    events, missing = await _TURNS.run(
        session.tenant, lambda: investigation.investigate(before, picture, texts)
    )
    if not before["hypotheses"]:
        missing = ["logs, metrics or traces from the time of the incident, and from before it"]
    after = await session.record(events)
    return {"messages": [], "diagnosis": after, "missing": missing}


def after_investigate(state: State) -> Literal["ask", "conclude"]:
    """Ask for what is missing, unless a cause is supported."""
    now = state["diagnosis"]
    leading = now["hypotheses"].get(now["leading"])
    supported = leading is not None and leading["status"] == "supported"
    # Each round begins with new data, so that the questions end with the user's answers.
    return "ask" if state["missing"] and not supported else "conclude"


async def ask(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Record the question for what is missing."""
    text = replies.question(state["missing"], state["diagnosis"])
    return await _ask(state, config, runtime, text, state["missing"])


async def ask_first(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """Record the question for something to read."""
    again = "question_asked" in state["diagnosis"]["counts"]
    text = replies.AGAIN if again else replies.FIRST
    return await _ask(state, config, runtime, text, ["logs, metrics or traces"])


async def wait(state: State) -> State:
    """Interrupt the run until the question is answered; `intake` reads the answer as a message."""
    question = state["diagnosis"]["question"]
    reply = interrupt(
        {"kind": "missing_evidence", "question": question["text"], "missing": question["missing"]}
    )
    return {"messages": [HumanMessage(_text_of(reply))]}


async def conclude(state: State, config: RunnableConfig, runtime: Runtime[Context]) -> State:
    """End the investigation. The fold decides whether a cause is named."""
    session = Session(config, runtime.execution_info)
    missing = [each[:400] for each in state.get("missing", [])][:10]
    offline = not ModelSettings.from_environment().is_configured
    before = (await session.now()).state
    if not before["sources"]:
        return await _say(state, session, [], replies.FIRST)
    # The text tells what the fold makes of the event, so the event comes first.
    done = new(ConclusionDrawn(missing=missing))
    after = await session.preview([done])
    text = replies.ended(session.id, after, offline=offline)
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


async def _ask(
    state: State,
    config: RunnableConfig,
    runtime: Runtime[Context],
    text: str,
    missing: list[str],
) -> State:
    session = Session(config, runtime.execution_info)
    number = state["diagnosis"]["counts"].get("question_asked", 0) + 1
    asked = QuestionAsked(id=f"q{number}", text=text, missing=[each[:400] for each in missing[:10]])
    return await _say(state, session, [new(asked)], text)


async def _say(state: State, session: Session, events: list[New], text: str) -> State:
    """Record events and the assistant's message, and add the message to the thread."""
    told = "\n\n".join([*state.get("problems", []), text])
    message = AIMessage(told, id=hashlib.sha256(f"{session.task} {told}".encode()).hexdigest()[:32])
    after = await session.record([*events, _message(str(message.id), "assistant", told)])
    return {"messages": [message], "diagnosis": after, "problems": []}


def _added(
    state: Folded, given: list[Given], settings: DiagnosisSettings
) -> tuple[list[New], list[str]]:
    """Return the events of new sources, and a sentence for each that cannot be read."""
    events: dict[str, New] = {}
    problems = []
    used = sum(each["chars"] for each in state["sources"].values())
    for each in given:
        # The same text under the same name is the same source, however often it is pasted.
        digest = hashlib.sha256(_NAMED.format(each.name, each.text).encode()).hexdigest()
        name = f"s{digest[:16]}"
        shown = f"The {each.kind} {each.name}".strip()
        if name in state["sources"] or name in events:
            problems.append(f"{shown} is in the record already.")
        elif len(each.text) > settings.max_source_chars:
            problems.append(
                f"{shown} is too long: at most {settings.max_source_chars} characters. Paste the part "
                "around the incident."
            )
        elif (
            used + len(each.text) > settings.max_session_chars
            or len(state["sources"]) + len(events) >= SOURCES
        ):
            problems.append(f"{shown} was not read: the session is full. Begin a new one.")
        else:
            used += len(each.text)
            added = SourceAdded(id=name, **{**each._asdict(), "name": each.name[:200]})
            events[name] = new(added)
    return list(events.values()), problems


async def _look(session: Session, read: list[reader.Source]) -> tuple[Picture, dict[str, str]]:
    """Return the signs in sources, and the sources' texts."""
    picture = await parsing.run(signs.picture, read, tenant=session.tenant)
    return picture, {each.id: each.text for each in read}


def _message(identifier: str, role: Literal["user", "assistant"], text: str) -> New:
    return new(MessageAdded(id=identifier[:80], role=role, text=text.strip()[:WORDS] or "[empty]"))


def _clean(text: str) -> str:
    """Return a text without halves of characters, which no database can hold."""
    return text.encode("utf-8", "replace").decode()


def _text_of(reply: Any) -> str:
    """Return the reply to a question as text; user interfaces wrap it in different ways."""
    if isinstance(reply, str) and reply.strip():
        return reply
    if isinstance(reply, list) and len(reply) == 1:
        return _text_of(reply[0])
    if isinstance(reply, dict):
        # The hook of LangChain answers an open question with what would have been the next input.
        messages = reply.get("messages")
        if isinstance(messages, list) and messages:
            return _text_of(messages[-1])
        for key in ("answer", "text", "value", "choice", "args", "content"):
            if key in reply:
                return _text_of(reply[key])
    if isinstance(reply, bool):
        return "yes" if reply else "no"
    return json.dumps(reply, ensure_ascii=False, default=str)


def _context(runtime: Runtime[Context]) -> Context:
    # langgraph's types exclude None, but a run without a context gets None outside a server.
    return runtime.context or Context()  # type: ignore[truthy-bool]
