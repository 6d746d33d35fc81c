"""Investigation: the events that a round of work on an incident leads to. Pure."""

from collections.abc import Sequence
from typing import Literal

from my_agent.diagnosis.analysis.checks import Result, Seen
from my_agent.diagnosis.analysis.proposal import Proposal
from my_agent.diagnosis.record.events import (
    EvidenceRecorded,
    HypothesisProposed,
    InvestigationStarted,
    New,
    ObservationRecorded,
    ResultRecorded,
    new,
)
from my_agent.diagnosis.record.fold import HYPOTHESES, OBSERVATIONS, State

By = Literal["rules", "model"]
# Observations that are recorded without a test that needs them.
SHOWN = 60
_LINE, _NAME = 400, 80


class Round:
    """Collects the events of one round of work.

    Args:
        state: the state before it.
    """

    def __init__(self, state: State) -> None:
        self.events: list[New] = []
        self._observations = set(state["observations"])
        self._hypotheses = dict(state["hypotheses"])

    def observe(self, seen: Sequence[Seen]) -> None:
        """Record lines that stand out, as long as there is room."""
        for each in seen:
            if len(self._observations) < SHOWN:
                self._observe(each)

    def judge(self, proposal: Proposal, results: Sequence[Result], by: By) -> None:
        """Record a proposal, its evidence, and the results of its tests that are new."""
        name = clipped(proposal.id, _NAME)
        if name not in self._hypotheses:
            if len(self._hypotheses) >= HYPOTHESES:
                return
            self._propose(name, proposal, by)
        for result in results:
            self._record(name, result)

    def _propose(self, name: str, proposal: Proposal, by: By) -> None:
        led = clipped(proposal.effect_of, _NAME) if proposal.effect_of else None
        proposed = HypothesisProposed(
            id=name,
            parent=led if led in self._hypotheses else None,
            service=clipped(proposal.component, _NAME),
            fault=clipped(proposal.kind, _NAME),
            statement=clipped(proposal.cause, _LINE),
            by=by,
        )
        self.events += [new(proposed), new(InvestigationStarted(hypothesis=name))]
        self._hypotheses[name] = {"tests": {}}

    def _record(self, name: str, result: Result) -> None:
        before = self._hypotheses[name]["tests"].get(result.test)
        outcome, reason = result.outcome, clipped(result.reason, _LINE)
        behind = [each for each in result.behind if self._observe(each)]
        known = {each["observation"] for each in before["evidence"]} if before else set()
        is_same = before and (before["outcome"], before["reason"]) == (outcome, reason)
        if is_same and {each.id for each in behind} <= known:
            return
        for each in behind:
            self.events.append(new(_evidence(name, result, each)))
        if result.behind and not behind:
            # There is no room for the observation, and without it the result would rest on nothing.
            outcome, reason = "unclear", "The session has no room for another observation"
        ended = ResultRecorded(hypothesis=name, test=result.test, outcome=outcome, reason=reason)
        self.events.append(new(ended))

    def _observe(self, seen: Seen) -> bool:
        """Return whether a line is recorded, now or before."""
        if seen.id in self._observations:
            return True
        if len(self._observations) >= OBSERVATIONS or not seen.quote.strip():
            return False
        self._observations.add(seen.id)
        told = ObservationRecorded(
            id=seen.id,
            source=seen.source,
            start=seen.start,
            end=seen.end,
            quote=seen.quote,
            kind=seen.kind,
            service=seen.component[:100],
            when=seen.when,
            text=clipped(seen.quote, _LINE),
        )
        self.events.append(new(told))
        return True


def _evidence(name: str, result: Result, seen: Seen) -> EvidenceRecorded:
    return EvidenceRecorded(
        hypothesis=name,
        test=result.test,
        direction="for" if result.outcome == "passed" else "against",
        observation=seen.id,
        source=seen.source,
        start=seen.start,
        end=seen.end,
        quote=seen.quote,
    )


def clipped(text: str, most: int) -> str:
    """Return a text that an event can hold: of one line, not empty, and not too long."""
    return " ".join(text.split())[:most] or "unknown"
