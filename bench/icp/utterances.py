"""Utterances: play each line of `utterances.txt` on the real graph and judge what it did.

A situation is reached by real messages. Then one message is sent, and the class of the turn and the
effect on state and database are compared with what the line expects:

- `searched`: a search has run; `enriched:1,2` or `enriched:all`: these were enriched, and no others;
- `asks:KIND`: this question waits afterwards; `asks:none`: no question waits;
- `icp:FIELD=A,B`: the profile, with the change that waits for an answer;
- `feedback:3=rejected`: exactly this feedback is stored;
- `customers:3`, `site:acme.com`, `site:none`: what is known of the company;
- `says:TEXT`: the answer contains the text; `none`: nothing of all this has changed.

A search, an enrichment, feedback that hides a company, or a stored change that the line does not
expect is a destructive misreading.
"""

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from sqlalchemy import select, update

from bench.report import Line
from my_agent.icp_finder.graph import graph
from my_agent.icp_finder.model import Candidate, Company, Icp, Score, Scored, Site
from my_agent.icp_finder.nodes import converse, profile
from my_agent.icp_finder.reading.answers import OPTIONS, Kind
from my_agent.icp_finder.reading.message_parser import merge_icp
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.records.feedback import feedback_of
from my_agent.icp_finder.records.statements import run
from my_agent.icp_finder.records.tables import discoveries, rules
from my_agent.icp_finder.sites import domain
from my_agent.tables import tables
from tests.support.openai_replies import Answer, call
from tests.support.openai_server import OpenAIServer

FILE = Path(__file__).with_name("utterances.txt")
UNSEEN = Path(__file__).with_name("utterances_unseen.txt")
OWED = 0.85
RULE = "Default ICP"
OWN = "acme.com"
ICP: Icp = {
    "industries": ["Food distribution", "Wholesale trade"],
    "sizes": [],
    "regions": ["Singapore"],
    "keywords": ["cold chain"],
}
NAMES = (
    *("Frostline Logistics", "Icebox Foods", "Harbour Cold Storage", "Palm Trading"),
    *("Lotus Wholesale", "Merlion Mart", "Orchid Provisions", "Straits Supply", "Tanjong Traders"),
    *("Ubin Catering", "Vanda Imports", "Yishun Grocers"),
)


Logged = MutableMapping[str, Any]


@dataclass(frozen=True)
class Utterance:
    """A line of the file.

    Attributes:
        situation: where the conversation is.
        kind: the expected class.
        effects: the expected effects.
        text: the message.
    """

    situation: str
    kind: str
    effects: tuple[str, ...]
    text: str


@dataclass
class Outcome:
    """What a message did.

    Attributes:
        wrong: the expectations that it did not meet.
        destructive: what it did unasked.
    """

    wrong: list[str] = field(default_factory=list)
    destructive: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class World:
    """What can be seen of a conversation and its tenant at one moment."""

    values: dict[str, Any]
    asks: str
    said: str
    searched: int
    feedback: Mapping[int, str]
    stored: Any


def utterances(path: Path = FILE) -> list[Utterance]:
    """Read the lines of a file."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        situation, kind, effects, text = (part.strip() for part in line.split("|", 3))
        found.append(Utterance(situation, kind, tuple(effects.split(";")), text))
    return found


def measure() -> Sequence[Line]:
    """Play all lines, print the accuracy of each class, and return the figures."""
    lines = utterances()
    return [
        *judged("offline", play(lines)),
        *judged("with a scripted model", play(lines, model=True)),
        *judged("offline, unseen lines", play(utterances(UNSEEN)), owed=None),
    ]


def judged(
    name: str, results: Sequence[tuple[Utterance, Outcome]], owed: float | None = OWED
) -> Sequence[Line]:
    """Print the accuracy of each class and each failure, and return the lines of the table.

    Args:
        name: how the lines were played.
        results: the lines with what they did.
        owed: required share of lines that were understood; None: no bound.
    """
    total, right = Counter[str](), Counter[str]()
    for each, outcome in results:
        total[each.kind] += 1
        right[each.kind] += not outcome.wrong
        for problem in (*outcome.wrong, *(f"DESTRUCTIVE {it}" for it in outcome.destructive)):
            print(f"  {each.situation}: {each.text!r}: {problem}")
    for kind in total:
        print(f"{name} {kind}: {right[kind]} of {total[kind]}")
    destroyed = sum(bool(outcome.destructive) for _, outcome in results)
    share = right.total() / total.total()
    return [
        Line(f"utterances understood, {name}", share, "", limit=owed, better="higher"),
        Line(f"destructive misreadings, {name}", destroyed, "", limit=0),
    ]


def play(lines: Sequence[Utterance], *, model: bool = False) -> list[tuple[Utterance, Outcome]]:
    """Play each line with a tenant of its own.

    Args:
        lines: the lines.
        model: whether a scripted model answers for messages that the rules are not sure about.
    """
    with structlog.testing.capture_logs() as logs, _offline():
        if not model:
            return asyncio.run(_play(lines, logs))
        with OpenAIServer() as server:
            os.environ |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": server.api_key}
            try:
                return asyncio.run(_play(lines, logs, server))
            finally:
                del os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]


async def _play(
    lines: Sequence[Utterance], logs: Sequence[Logged], server: OpenAIServer | None = None
) -> list[tuple[Utterance, Outcome]]:
    found = []
    for at, each in enumerate(lines):
        if server is not None:
            server.fallback = _scripted(each)
        found.append((each, await _outcome(each, f"tenant-{at}", logs)))
    return found


def _scripted(each: Utterance) -> Answer:
    """Return what a model that knows the expectation would answer, as a tool call."""
    effects = {name: value for name, _, value in (it.partition(":") for it in each.effects)}
    reading: dict[str, Any] = {"kind": each.kind}
    consents = bool(effects.keys() & {"searched", "enriched"})
    if each.kind == "answer":
        options = list(OPTIONS[_ASKS[each.situation]])
        # A line after which the same question waits chooses nothing.
        if "asks" not in effects:
            reading["choice"] = options[0 if consents else -1]
    elif each.kind == "feedback":
        number, _, verdict = effects.get("feedback", "1=kept").partition(",")[0].partition("=")
        topics = {"rejected": "reject", "kept": "keep", "liked": "like"}
        reading |= {"topic": topics[verdict], "numbers": [int(number)]}
    elif each.kind in ("question", "talk"):
        reading["topic"] = {"question": "other", "talk": "chatter"}[each.kind]
    elif each.kind == "change" and "icp" in effects:
        name, _, values = effects["icp"].partition("=")
        reading[name] = [value for value in values.split(",") if value]
    return call("TurnReading", **reading)


_ASKS: dict[str, Kind] = {
    "confirm": "confirm_icp",
    "enrich": "enrich",
    "rerun": "rerun",
    "change": "context_change",
}


async def _outcome(each: Utterance, tenant: str, logs: Sequence[Logged]) -> Outcome:
    talk = Talk(tenant, logs)
    await SITUATIONS[each.situation](talk)
    before = await talk.world()
    await talk.say(each.text)
    after = await talk.world()
    outcome = Outcome()
    kind = (after.values.get("turn") or {}).get("kind")
    if kind != each.kind and not _equivalent(each, kind):
        outcome.wrong.append(f"is {kind}, not {each.kind}")
    outcome.wrong += [f"not {it}" for it in each.effects if not _holds(it, before, after)]
    outcome.destructive = list(_unasked(each, before, after))
    return outcome


def _equivalent(each: Utterance, kind: Any) -> bool:
    # An answer that chooses nothing is the same as one that is unclear.
    return {each.kind, kind} == {"answer", "unclear"} and any(
        it.startswith("asks:") for it in each.effects
    )


class Talk:
    """A conversation of a tenant with the graph."""

    def __init__(self, tenant: str, logs: Sequence[Logged]) -> None:
        self.tenant = tenant
        self._logs = logs
        self._graph: Any = graph.copy(update={"checkpointer": InMemorySaver()})
        user = {"identity": "ann", "tenant_id": tenant}
        self._config: RunnableConfig = {
            "configurable": {"thread_id": tenant, "langgraph_auth_user": user}
        }
        self._seen = 0

    async def say(self, text: str, *, resume: bool = True) -> None:
        """Send a message, as the answer to the question if one waits."""
        state = await self._graph.aget_state(self._config)
        self._seen = len(state.values.get("messages", []))
        sent: Any = {"messages": [HumanMessage(text)]}
        if state.interrupts and resume:
            sent = Command(resume=text)
        await self._graph.ainvoke(sent, self._config)

    async def world(self) -> World:
        """Return what can be seen now."""
        state = await self._graph.aget_state(self._config)
        asks = state.interrupts[0].value["kind"] if state.interrupts else "none"
        said = "\n".join(str(each.text) for each in state.values.get("messages", [])[self._seen :])
        stored = select(rules.c.icp, rules.c.confirmed).where(rules.c.tenant_id == self.tenant)
        # A search that finds nothing changes no row.
        searched = sum(
            each.get("action") == "icp_refreshed" and each.get("thread_id") == self.tenant
            for each in self._logs
        )
        icps = await run(lambda c: [tuple(row) for row in c.execute(stored)], self.tenant)
        verdicts = await feedback_of(self.tenant, RULE)
        numbers = {NAMES.index(each.name) + 1: each.verdict for each in verdicts.values()}
        return World(state.values, asks, said, searched, numbers, icps)

    async def know(self, *, confirmed: bool, customers: int = 5) -> Company:
        """Store the company and its profile."""
        company: Company = {
            "site": _site(OWN),
            "customers": [_site(f"c{n}.com") for n in range(1, customers + 1)],
        }
        await store.save_profile(self.tenant, company, confirmed=confirmed)
        if customers == 5:
            await store.save_rule(self.tenant, OWN, RULE, ICP, confirmed=confirmed)
        return company

    async def discover(self) -> None:
        """Store a confirmed company with candidates."""
        of = basis(await self.know(confirmed=True), ICP)
        found = [_scored(at, name) for at, name in enumerate(NAMES)]
        await store.save_discovery(self.tenant, RULE, icp_hash(of), of, found)

    async def age(self) -> None:
        """Make the last search stale."""
        rows = discoveries.c.tenant_id == self.tenant
        old = discoveries.c.discovered_at

        def work(connection: Any) -> None:
            then = connection.scalar(select(old).where(rows)) - timedelta(days=30)
            connection.execute(update(discoveries).where(rows).values(discovered_at=then))

        await run(work, self.tenant, write=True)


async def _new(talk: Talk) -> None:
    await talk.say("?")


async def _customers(talk: Talk) -> None:
    await talk.know(confirmed=False, customers=2)
    await talk.say("Hello")


async def _confirm(talk: Talk) -> None:
    await talk.know(confirmed=False)
    await talk.say("Hello")


async def _enrich(talk: Talk) -> None:
    await talk.discover()
    await talk.say("Hello")


async def _idle(talk: Talk) -> None:
    await _enrich(talk)
    await talk.say("later")


async def _rerun(talk: Talk) -> None:
    await talk.discover()
    await talk.age()
    await talk.say("Hello")


async def _change(talk: Talk) -> None:
    await _idle(talk)
    await talk.say("industries: Software development")


SITUATIONS: dict[str, Callable[[Talk], Any]] = {
    "new": _new,
    "customers": _customers,
    "confirm": _confirm,
    "enrich": _enrich,
    "idle": _idle,
    "rerun": _rerun,
    "change": _change,
}


def _holds(effect: str, before: World, after: World) -> bool:
    """Return whether an expected effect has happened."""
    name, _, value = effect.partition(":")
    values = after.values
    match name:
        case "none":
            return not _changes(before, after)
        case "searched":
            return bool(after.searched != before.searched)
        case "enriched":
            return _enriched(before, after) == _numbers(value)
        case "asks":
            return after.asks == value
        case "says":
            return value.casefold() in after.said.casefold()
        case "feedback":
            pairs = (each.split("=") for each in value.split(","))
            return after.feedback == {int(number): verdict for number, verdict in pairs}
        case "customers":
            return len(values.get("customers", [])) == int(value)
        case "site":
            site = values.get("site")
            return (site["domain"] if site else "none") == value
        case "icp":
            wanted, _, listed = value.partition("=")
            change = values.get("change") or {"icp": {}}
            icp: Any = merge_icp(values.get("icp"), change["icp"])
            return bool(icp[wanted] == [each for each in listed.split(",") if each])
    raise ValueError(f"unknown effect {effect!r}")


def _numbers(value: str) -> list[int]:
    return list(range(1, 11)) if value == "all" else [int(each) for each in value.split(",")]


def _enriched(before: World, after: World) -> list[int]:
    """Return the numbers of the candidates that the message has enriched."""
    done = after.values.get("enrichment")
    if done is None or done == before.values.get("enrichment"):
        return []
    keys = [f"domain:{at}.example" for at in range(len(NAMES))]
    # Without a network, no website can be read.
    tried = [*done["now"], *done.get("failed", [])]
    return sorted(keys.index(key) + 1 for key in tried)


def _changes(before: World, after: World) -> list[str]:
    """Return what a message has done that needs the user's consent."""
    found = []
    if after.searched != before.searched:
        found.append("searched")
    if _enriched(before, after):
        found.append("enriched")
    if any(after.feedback.get(at) == "rejected" != before.feedback.get(at) for at in range(1, 13)):
        found.append("feedback")
    if [icp for icp, confirmed in after.stored if confirmed] != [
        icp for icp, confirmed in before.stored if confirmed
    ]:
        found.append("stored")
    return found


def _unasked(each: Utterance, before: World, after: World) -> Iterator[str]:
    expected = {it.partition(":")[0] for it in each.effects}
    # A search that is asked for also stores the profile.
    allowed = expected | ({"stored"} if "searched" in expected else set())
    yield from (it for it in _changes(before, after) if it not in allowed)
    enriched = [it for it in each.effects if it.startswith("enriched:")]
    if enriched and not set(_enriched(before, after)) <= set(_numbers(enriched[0][9:])):
        yield "enriched more than asked"
    # In a confirmed company nothing changes without a question.
    known = before.values.get("confirmed") and before.values.get("icp") != after.values.get("icp")
    if known and not allowed & {"searched", "icp"}:
        yield "rewritten"


@contextmanager
def _offline() -> Iterator[None]:
    """Use a database of its own, no network and no model."""
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    search = os.environ.get("ICP_WEB_SEARCH")
    os.environ["ICP_WEB_SEARCH"] = "false"
    reads = [(module, module.read_site) for module in (profile, converse)]
    for module, _ in reads:
        setattr(module, "read_site", _read)  # noqa: B010  # mypy rejects a plain assignment
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        tables.use(f"sqlite:///{scratch}/data.db")
        try:
            yield
        finally:
            tables.close()
            tables.use(None)
            for module, read in reads:
                setattr(module, "read_site", read)  # noqa: B010
            os.environ |= kept
            if search is None:
                del os.environ["ICP_WEB_SEARCH"]
            else:
                os.environ["ICP_WEB_SEARCH"] = search


async def _read(website: str) -> Site:
    return _site(domain(website))


def _site(name: str) -> Site:
    return {
        "website": f"https://{name}",
        "domain": name,
        "name": name,
        "about": "A wholesaler of chilled food for shops, with a cold chain.",
    }


def _scored(at: int, name: str) -> Scored:
    region = "Johor" if at % 3 == 2 else "Singapore"
    about = f"{name} sells chilled food in {region}." if at % 2 else f"{name} stores frozen goods."
    candidate = Candidate(
        f"domain:{at}.example",
        name,
        "web",
        ssic=["46"],
        industry="Wholesale trade",
        region=region,
        about=about,
    )
    total = round(0.9 - at / 50, 3)
    return Scored(candidate, Score(total, {"industry": round(total / 2, 3), "region": 0.15}))
