"""Looking: one look at everything that a session was given, and what follows from it."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.runnables import RunnableConfig

from my_agent import parsing
from my_agent.asking import Failed
from my_agent.diagnosis import briefing, model, runbooks, showing
from my_agent.diagnosis.analysis import anomalies, overview, rules, steps
from my_agent.diagnosis.analysis.anomalies import Anomalies, Anomaly
from my_agent.diagnosis.analysis.checks import Seen, check
from my_agent.diagnosis.analysis.kinds import kind_of
from my_agent.diagnosis.analysis.proposal import Proposal
from my_agent.diagnosis.briefing import HEAD, SHORT, WHOLE, Shown
from my_agent.diagnosis.connectors import calls
from my_agent.diagnosis.connectors import tools as connected
from my_agent.diagnosis.giving import Giving
from my_agent.diagnosis.investigation import By, Round
from my_agent.diagnosis.model import Look
from my_agent.diagnosis.quoting import Quoting
from my_agent.diagnosis.reading.digest import QUOTE, Digest
from my_agent.diagnosis.reading.sources import Given
from my_agent.diagnosis.record.events import New
from my_agent.diagnosis.record.fold import State
from my_agent.diagnosis.record.texts import Found
from my_agent.diagnosis.session import Session
from my_agent.diagnosis.settings import DiagnosisSettings
from my_agent.models import ModelSettings

# What stands out and is recorded before anything is proposed.
RECORDED = 40
# Lines that a search finds and a passage shows, and characters of a tool's answer that a model sees.
SEARCHED, PASSAGE, PART, ANSWERED = 2_000, 20, 4_000, 9_000


class Done(NamedTuple):
    """What an investigation leads to.

    Attributes:
        events: its events.
        missing: what would decide.
        failed: why no model has looked, or an empty text.
    """

    events: list[New]
    missing: list[str]
    failed: str


class Looking:
    """A look at the sources of a session.

    Args:
        session: the session.
        state: its state.
        digests: what its sources say, by id.
        found: what stands out in them.
    """

    def __init__(
        self, session: Session, state: State, digests: dict[str, Digest], found: Anomalies
    ) -> None:
        self._session, self._state = session, state
        self._digests, self._found = digests, found

    @classmethod
    async def at(cls, session: Session, state: State) -> "Looking":
        """Read the sources of a state; what was read before is not read again.

        Raises:
            Unreadable: a source takes too long to read.
        """
        digests = await session.digests(state)
        found = await parsing.run(anomalies.find, digests, tenant=session.tenant)
        return cls(session, state, digests, found)

    def problems(self) -> list[str]:
        """Return a sentence about what was not read."""
        unread = self._found.unread
        return [f"{unread:,} lines were not read: they are too many."] if unread else []

    async def observed(self) -> list[New]:
        """Return the events of what stands out."""
        made = Round(self._state)
        made.observe(await self._seen(self._found.ranked[:RECORDED]))
        return made.events

    def shown(self) -> str:
        """Return what stands out as text."""
        return showing.render(overview.shown(self._found), self._state)

    async def runbooks(self) -> str:
        """Return what runbooks say about the leading cause or what stands out, as text."""
        leading = self._state["hypotheses"].get(self._state["leading"])
        told = [leading["statement"], leading["fault"]] if leading is not None else []
        told += [each.text for each in self._found.trouble[:3]]
        passages = (
            await runbooks.find(self._session.tenant, "\n".join(told)[:2_000]) if told else []
        )
        return showing.passages(passages)

    async def investigated(self, name: str | None, config: RunnableConfig) -> Done:
        """Let rules and a model propose causes, and judge each by the lines that it quotes.

        Args:
            name: name of the model; None: the configured one.
            config: config of the run.
        """
        missing = steps.next_steps(self._found)
        proposed = await self._asked(name, config)
        # After the model has looked: what tools have answered is evidence, too.
        made = Round(self._state)
        quoting = Quoting(self._session, self._state, self._digests)
        if isinstance(proposed, model.Found):
            for each in proposed.proposals:
                await self._judge(made, quoting, each, "model")
            missing = proposed.missing or missing
        # A model has seen what rules see, and more; without one they are all there is.
        else:
            for each in rules.propose(self._found):
                await self._judge(made, quoting, each, "rules")
        failed = proposed.said if isinstance(proposed, Failed) else ""
        return Done(made.events, missing, failed)

    async def _judge(self, made: Round, quoting: Quoting, proposal: Proposal, by: By) -> None:
        seen, unfound = await quoting.seen(proposal)
        searched = await quoting.searched(proposal, seen)
        made.judge(proposal, check(proposal, seen, unfound, searched), by)

    async def _asked(self, name: str | None, config: RunnableConfig) -> model.Found | Failed | None:
        if not ModelSettings.from_environment().is_configured:
            return None
        settings = DiagnosisSettings.from_environment()
        tools = await connected.available(self._session.tenant)
        told = [
            f"- {each.name}: {each.description} {json.dumps(dict(each.schema))}" for each in tools
        ]
        heads = await self._heads()
        # What is shown in full stands out by itself.
        hidden = [
            each for each in self._found.ranked if not heads[each.source].is_whole and each.places
        ]
        out = await self._seen(hidden[: briefing.OUT])
        changed = await self._seen(
            [each for each in self._found.changes if not heads[each.source].is_whole][
                : briefing.CHANGES
            ]
        )
        text = briefing.render(
            self._state, heads, out, changed, tools=told, runbooks=await self.runbooks()
        )
        return await model.propose(
            text, self._look, name, config, seconds=settings.model_seconds, tools=bool(tools)
        )

    async def _heads(self) -> dict[str, Shown]:
        """Return short sources in full, and the beginning of the others."""
        shown, left = dict[str, Shown](), WHOLE
        for name, about in self._state["sources"].items():
            if about["chars"] <= min(SHORT, left):
                [text] = await self._session.parts([(name, 0, about["chars"])])
                shown[name] = Shown(text, is_whole=True)
                left -= about["chars"]
            else:
                lines = await self._session.lines(name, 1, HEAD)
                text = "\n".join(each.text[:QUOTE] for each in lines)
                shown[name] = Shown(text, is_whole=False)
        return shown

    async def _look(self, looks: Sequence[Look]) -> str:
        """Return what looks of a model show."""
        return "\n\n".join([await self._one(each) for each in looks])

    async def _one(self, look: Look) -> str:
        if look.tool:
            return await self._called(look)
        if look.words:
            source = look.source if look.source in self._state["sources"] else None
            lines = await self._session.search(look.words, source, SEARCHED, first=look.line)
            return briefing.found(lines, look.words, self._state, is_all=len(lines) < SEARCHED)
        if look.source in self._state["sources"]:
            count = 1 if look.at > 0 else PASSAGE
            lines = await self._session.lines(look.source, max(1, look.line), count)
            if look.at > 0 and lines:
                return await self._part(lines[0], look.at)
            return briefing.passage(lines)
        return f"There is no source {look.source[:40]!r}."

    async def _part(self, line: Found, at: int) -> str:
        """Return a part of a long line."""
        start = line.start + at
        [text] = await self._session.parts([(line.source, start, start + PART)])
        text = text.partition("\n")[0]
        return f"{line.source} line {line.line}, from character {at}:\n{text}"

    async def _called(self, look: Look) -> str:
        """Return the answer of a tool, which becomes a source of the session."""
        try:
            arguments = json.loads(look.arguments or "{}")
        except ValueError:
            return f"The arguments of {look.tool[:80]} are no JSON."
        answer = await calls.call(self._session.tenant, look.tool, arguments)
        if answer.refusal:
            return f"{look.tool[:80]}: {answer.refusal}"
        giving = Giving(self._state, DiagnosisSettings.from_environment())
        named = f"{look.tool} {look.arguments}"[:200]
        giving.add([Given("probe", "tool", named, answer.text.count("\n") + 1, answer.text)])
        self._state = await self._session.record(giving.events, giving.texts)
        self._digests = await self._session.digests(self._state)
        source = next(iter(giving.texts), "known already")
        return f"{look.tool[:80]} (source {source}):\n{answer.text[:ANSWERED]}"

    async def _seen(self, found: Sequence[Anomaly]) -> list[Seen]:
        placed = [each for each in found if each.places]
        spans = [
            (
                each.source,
                each.places[0].start,
                min(each.places[0].end, each.places[0].start + QUOTE),
            )
            for each in placed
        ]
        quotes = await self._session.parts(spans)
        return [
            Seen(
                f"{source}:{start}-{end}"[:80], "context", source, start, end, quote,
                kind_of(each), each.component, each.level, each.stance, each.when,
            )
            for each, (source, start, end), quote in zip(placed, spans, quotes, strict=True)
        ]  # fmt: skip
