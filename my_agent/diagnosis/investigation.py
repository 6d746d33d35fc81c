"""Investigation: the events that a round of work on an incident leads to. Pure."""

from collections.abc import Mapping, Sequence

from my_agent.diagnosis.analysis.candidates import Candidate, choose, rank
from my_agent.diagnosis.analysis.checks import Result, check, missing
from my_agent.diagnosis.analysis.signs import Picture, Sign
from my_agent.diagnosis.events import (
    EvidenceRecorded,
    HypothesisProposed,
    InvestigationStarted,
    New,
    ObservationRecorded,
    ResultRecorded,
    new,
)
from my_agent.diagnosis.fold import HYPOTHESES, OBSERVATIONS, State

Texts = Mapping[str, str]
"""The text of each source, by id."""

# Observations that are recorded without a test that needs them.
SHOWN = 60


def observe(state: State, picture: Picture, texts: Texts) -> list[New]:
    """Return the events of the signs that the session does not know yet, the new ones first."""
    room = SHOWN - len(state["observations"])
    signs = sorted(picture.signs, key=lambda each: (each.chronic, each.when or 0, each.id))
    wanted = {each.id: each for each in signs if each.id not in state["observations"]}
    return [_observation(each, texts) for each in list(wanted.values())[: max(0, room)]]


def propose(state: State, picture: Picture, proposed: Sequence[Candidate]) -> list[New]:
    """Return the events of the hypotheses to investigate that the session does not have yet."""
    ranked = rank(picture)
    known = dict(state["hypotheses"])
    events = []
    for each in choose(ranked, proposed):
        if each.id in known or len(known) >= HYPOTHESES:
            continue
        by = "rules" if each in ranked else "model"
        events.append(
            new(
                HypothesisProposed(
                    id=each.id,
                    parent=_parent(known, picture, each),
                    service=each.service,
                    fault=each.fault,
                    statement=each.statement[:400],
                    by=by,  # type: ignore[arg-type]
                )
            )
        )
        known[each.id] = {"service": each.service}
    return events


def investigate(state: State, picture: Picture, texts: Texts) -> tuple[list[New], list[str]]:
    """Return the events of the tests of all hypotheses, and what would decide about the best.

    A result that the session has already is not recorded again.
    """
    events: list[New] = []
    known = set(state["observations"])
    wanted: list[tuple[int, list[str]]] = []
    for name, hypothesis in state["hypotheses"].items():
        candidate = Candidate(hypothesis["service"], hypothesis["fault"])
        if not hypothesis["started"]:
            events.append(new(InvestigationStarted(hypothesis=name)))
        results = check(picture, candidate)
        for result in results:
            events += _result(name, hypothesis, result, texts, known)
        passed = sum(each.outcome == "passed" for each in results)
        failed = sum(each.outcome == "failed" for each in results)
        wanted.append((passed - 2 * failed, missing(picture, candidate, results)))
    best = max(wanted, key=lambda each: each[0], default=(0, []))
    return events, best[1]


def _result(
    name: str, hypothesis: State, result: Result, texts: Texts, known: set[str]
) -> list[New]:
    before = hypothesis["tests"].get(result.test)
    outcome, reason = result.outcome, result.reason[:400]
    if before is not None and (before["outcome"], before["reason"]) == (outcome, reason):
        return []
    events: list[New] = []
    direction = "for" if outcome == "passed" else "against"
    behind = [each for each in result.behind if each.id in known or len(known) < OBSERVATIONS]
    for sign in behind:
        observation = _observation(sign, texts)
        if sign.id not in known:
            events.append(observation)
            known.add(sign.id)
        fields = {key: observation.data[key] for key in ("source", "start", "end", "quote")}
        events.append(
            new(
                EvidenceRecorded(
                    hypothesis=name,
                    test=result.test,
                    direction=direction,  # type: ignore[arg-type]
                    observation=sign.id,
                    **fields,
                )
            )
        )
    if result.behind and not behind:
        # There is no room for the observation, and without it the result would rest on nothing.
        outcome, reason = "unclear", "The session has no room for another observation"
    ended = ResultRecorded(hypothesis=name, test=result.test, outcome=outcome, reason=reason)
    return [*events, new(ended)]


def _observation(sign: Sign, texts: Texts) -> New:
    more = f" ({sign.count} times)" if sign.count > 1 else ""
    return new(
        ObservationRecorded(
            id=sign.id,
            source=sign.source,
            start=sign.start,
            end=sign.end,
            quote=texts[sign.source][sign.start : sign.end],
            kind="chronic" if sign.chronic else sign.kind,
            service=sign.service[:100],
            when=sign.when,
            text=f"{sign.text[:300]}{more}",
        )
    )


def _parent(known: State, picture: Picture, candidate: Candidate) -> str | None:
    """Return the hypothesis of a service that calls the candidate's, which would explain it."""
    callers = picture.callers(candidate.service)
    return next((name for name, each in known.items() if each["service"] in callers), None)
