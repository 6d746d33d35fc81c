"""Checks: test a candidate against the signs. Each result names the signs behind it."""

from collections.abc import Callable
from typing import NamedTuple

from my_agent.diagnosis.analysis import faults
from my_agent.diagnosis.analysis.candidates import Candidate, blames, change_before
from my_agent.diagnosis.analysis.signs import MINUTE, Picture, Sign
from my_agent.diagnosis.events import Outcome

# Clocks of services differ, and a metric has a value every so often.
TOLERANCE = MINUTE // 2
# Signs that one result names.
NAMED = 3


class Result(NamedTuple):
    """The result of a test.

    Attributes:
        test: one of `confidence.WEIGHTS`.
        behind: the signs for it if it passed, or against it if it failed.
        reason: a sentence.
    """

    test: str
    outcome: Outcome
    behind: list[Sign]
    reason: str


def check(picture: Picture, candidate: Candidate) -> list[Result]:
    """Return the results of all tests of a candidate."""
    return [test(picture, candidate) for test in _TESTS]


def missing(picture: Picture, candidate: Candidate, results: list[Result]) -> list[str]:
    """Return what would decide about a candidate, as things to ask for."""
    unclear = {each.test for each in results if each.outcome == "unclear"}
    wanted = []
    if candidate.service not in picture.services:
        wanted.append(f"logs or metrics of {candidate.service} from the time of the incident")
    elif "signature" in unclear:
        wanted.append(f"logs of {candidate.service} that show what failed in it")
    if "metric" in unclear and candidate.service in picture.services:
        wanted.append(f"metrics of {candidate.service} as CSV")
    if "novelty" in unclear and not picture.has_baseline:
        wanted.append("logs from before the incident, to compare with")
    if unclear & {"order", "propagation"}:
        wanted.append(f"logs or traces of the services that call {candidate.service}")
    return wanted


def _fault_signs(picture: Picture, candidate: Candidate, kind: str) -> list[Sign]:
    return [
        each
        for each in picture.signs
        if each.kind == kind and each.service == candidate.service and each.fault == candidate.fault
    ]


def _signature(picture: Picture, candidate: Candidate) -> Result:
    if candidate.fault == faults.DEPLOY:
        return _deployed(picture, candidate)
    found = _fault_signs(picture, candidate, "fault")
    new = [each for each in found if not each.chronic]
    if new:
        return _passed("signature", new, f"Messages show {faults.title(candidate.fault)}")
    if found:
        return _failed("signature", found, "The messages were there in normal times already")
    return _unclear("signature", "No message shows this fault")


def _deployed(picture: Picture, candidate: Candidate) -> Result:
    """Test a new version: errors must begin shortly after it."""
    for sign in sorted(picture.new(candidate.service), key=lambda each: each.when or 0):
        change = change_before(picture, sign)
        if sign.kind in ("fault", "error") and change is not None:
            return _passed("signature", [change, sign], "Errors begin shortly after a new version")
    return _unclear("signature", "No error begins shortly after a new version")


def _metric(picture: Picture, candidate: Candidate) -> Result:
    found = _fault_signs(picture, candidate, "metric")
    if found:
        return _passed("metric", found, "A metric of this fault changes")
    return _unclear("metric", "No metric shows this fault")


def _first_sign(picture: Picture, candidate: Candidate) -> Sign | None:
    """Return the first new sign of the fault itself, or None."""
    found = [
        each
        for each in picture.new(candidate.service)
        if each.when is not None
        and (each.fault == candidate.fault or candidate.fault == faults.DEPLOY)
    ]
    return min(found, key=lambda each: each.when or 0, default=None)


def _order(picture: Picture, candidate: Candidate) -> Result:
    first = _first_sign(picture, candidate)
    if first is None or first.when is None:
        return _unclear("order", "The time of its first sign is not known")
    others = _victims(picture, candidate)
    # Errors that blame no service cannot show who came first, and can show who did not.
    beside = others or _troubled(picture, candidate)
    earlier = [each for each in beside if (each.when or 0) < first.when - TOLERANCE]
    if earlier:
        shown = min(earlier, key=lambda each: each.when or 0)
        return _failed("order", [shown], f"{shown.service} failed before {candidate.service}")
    if not others:
        return _unclear("order", "No other service fails because of one that it calls")
    return _passed("order", [first], f"{candidate.service} failed before the others")


def _victims(picture: Picture, candidate: Candidate) -> list[Sign]:
    """Return the first sign of each other service that blames a service, or is known to call."""
    callers = {caller for caller, _ in picture.calls}
    found = [
        picture.onset(each)
        for each in sorted(picture.services - {candidate.service})
        if each in callers and blames(picture, each)
    ]
    return [each for each in found if each is not None]


def _troubled(picture: Picture, candidate: Candidate) -> list[Sign]:
    """Return the first new sign of each other service that shows no fault of its own."""
    found = []
    for service in sorted(picture.services - {candidate.service}):
        onset = picture.onset(service)
        if onset is not None and not any(each.fault for each in picture.new(service)):
            found.append(onset)
    return found


def _propagation(picture: Picture, candidate: Candidate) -> Result:
    calls = [each for each in picture.signs if each.kind == "call" and not each.chronic]
    # A caller may report the fault instead of the call.
    calls += [
        each for each in picture.new(candidate.service) if each.other and each.kind == "fault"
    ]
    towards = [
        each
        for each in calls
        if candidate.service in (each.other, each.service if each.kind == "fault" else "")
    ]
    if towards:
        return _passed("propagation", towards, f"Errors of callers lead to {candidate.service}")
    if calls:
        return _failed("propagation", calls[:1], f"No error leads to {candidate.service}")
    return _unclear("propagation", "No error names another service")


def _novelty(picture: Picture, candidate: Candidate) -> Result:
    if not picture.has_baseline:
        return _unclear("novelty", "The data does not show normal times")
    of_fault = [
        each
        for each in picture.signs
        if each.service == candidate.service
        and each.kind in ("fault", "metric")
        and each.fault == candidate.fault
    ]
    chronic = [each for each in of_fault if each.chronic]
    if chronic:
        return _failed("novelty", chronic, "Its signs were there in normal times already")
    first = _first_sign(picture, candidate)
    if first is None:
        return _unclear("novelty", "It shows no sign of this fault")
    return _passed("novelty", [first], "Its signs are new")


def _origin(picture: Picture, candidate: Candidate) -> Result:
    """Test whether its own errors lead on to a service that failed before it."""
    first = _first_sign(picture, candidate)
    for sign in blames(picture, candidate.service):
        other = picture.onset(sign.other)
        before = other is not None and first is not None and _is_before(other, first)
        if candidate.fault == faults.UNKNOWN or before or sign.other not in picture.services:
            return _failed("origin", [sign], f"Its own errors lead on to {sign.other}")
    if first is None:
        return _unclear("origin", "It shows no sign of this fault")
    return _passed("origin", [first], "Its own errors lead to no other service")


def _is_before(one: Sign, other: Sign) -> bool:
    return one.when is not None and other.when is not None and one.when < other.when


def _passed(test: str, behind: list[Sign], reason: str) -> Result:
    return Result(test, "passed", behind[:NAMED], reason)


def _failed(test: str, behind: list[Sign], reason: str) -> Result:
    return Result(test, "failed", behind[:NAMED], reason)


def _unclear(test: str, reason: str) -> Result:
    return Result(test, "unclear", [], reason)


_TESTS: tuple[Callable[[Picture, Candidate], Result], ...] = (
    _signature,
    _metric,
    _order,
    _propagation,
    _novelty,
    _origin,
)
