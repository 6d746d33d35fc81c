"""Candidates: which causes are worth an investigation. They order the work, not the confidence."""

from collections.abc import Iterable
from typing import NamedTuple

from my_agent.diagnosis.analysis import faults
from my_agent.diagnosis.analysis.signs import MINUTE, Picture, Sign

LEADING = 3
DEPLOY_WITHIN = 15 * MINUTE


class Candidate(NamedTuple):
    """A possible cause: a fault of a service."""

    service: str
    fault: str

    @property
    def id(self) -> str:
        """Return the id of its hypothesis."""
        return f"{self.service}:{self.fault}"[:80]

    @property
    def statement(self) -> str:
        """Return it as a sentence."""
        if self.fault == faults.UNKNOWN:
            return f"{self.service} failed, for a reason that is not known yet"
        return f"{self.service} failed because of {faults.title(self.fault)}"


def rank(picture: Picture) -> list[Candidate]:
    """Return the candidates, the most promising first."""
    worth: dict[Candidate, float] = {}
    for sign in picture.signs:
        if sign.fault and sign.kind in ("fault", "metric"):
            if sign.fault == faults.DEPLOY and change_before(picture, sign) is None:
                continue
            _add(worth, Candidate(sign.service, sign.fault), 0.3 if sign.chronic else 2.0)
    for sign in picture.signs:
        # A new version explains errors that no other fault explains.
        if sign.kind == "error" and not sign.chronic and change_before(picture, sign):
            _add(worth, Candidate(sign.service, faults.DEPLOY), 1.0)
    blamed = {each.other for each in picture.signs if each.kind == "call" and not each.chronic}
    for service in blamed - {each.service for each in worth}:
        worth[Candidate(service, faults.UNKNOWN)] = 0.5
    for service in picture.services - {each.service for each in worth}:
        if any(each.kind in ("error", "fault") for each in picture.new(service)):
            worth[Candidate(service, faults.UNKNOWN)] = 0.2
    onsets = {each: picture.onset(each) for each in picture.services}
    timed = sorted(sign.when for sign in onsets.values() if sign and sign.when is not None)
    for each in worth:
        onset = onsets.get(each.service)
        if onset and onset.when is not None and timed and onset.when <= timed[0] + MINUTE:
            worth[each] += 1.0
        if each.service in blamed:
            worth[each] += 1.0
        if blames(picture, each.service):
            worth[each] -= 1.0
    return sorted(worth, key=lambda each: (-worth[each], each))


def _add(worth: dict[Candidate, float], candidate: Candidate, value: float) -> None:
    # The kinds of signs add up, their number does not.
    worth[candidate] = min(worth.get(candidate, 0.0) + value, 4.0)


def blames(picture: Picture, service: str) -> list[Sign]:
    """Return the new errors of a service that name another one."""
    return [each for each in picture.new(service) if each.kind == "call" and each.other]


def change_before(picture: Picture, sign: Sign) -> Sign | None:
    """Return the change of a sign's service shortly before it, or None."""
    if sign.when is None:
        return None
    found = [
        each
        for each in picture.signs
        if each.kind == "change"
        and each.service == sign.service
        and each.when is not None
        and 0 <= sign.when - each.when <= DEPLOY_WITHIN
    ]
    return max(found, key=lambda each: each.when or 0, default=None)


def choose(ranked: Iterable[Candidate], proposed: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates to investigate: those of the rules, and one that a model proposes.

    A model can add a candidate, and cannot remove one that the rules rank high.
    """
    ranked = list(ranked)
    extra = [each for each in proposed if each not in ranked[:LEADING]][:1]
    return [*ranked[: LEADING - len(extra)], *extra]
