"""Rules: name a cause where two independent observations say so, and nothing contradicts them."""

from collections.abc import Iterator
from typing import NamedTuple

from my_agent.diagnosis.analysis.anomalies import Anomalies, Anomaly
from my_agent.diagnosis.analysis.causes import CAUSES, Cause, Sign
from my_agent.diagnosis.analysis.proposal import Proposal, Quote, Refutation
from my_agent.diagnosis.reading import stance
from my_agent.diagnosis.reading.digest import Shift

QUOTES = 4
"""Lines that a proposal quotes."""
LONGEST = 300
"""Characters of a quote."""
# A metric is near its limit from this part on, and rose if it became so many times what it was.
NEAR, MORE, DOUBLE, MULTIPLE = 0.8, 1.3, 2.0, 10.0
SAID = 160
"""Characters of the statement that a cause repeats."""

_VICTIM = Sign("victim", role="effect")


class Hit(NamedTuple):
    """An observation that shows a sign of a cause."""

    sign: Sign
    anomaly: Anomaly

    @property
    def component(self) -> str:
        """Return what has the cause, if this is a sign of the cause itself."""
        names = self.anomaly.names
        return names[0] if self.sign.is_named and names else self.anomaly.component


class Named(NamedTuple):
    """A cause that is named, and the observations behind it, whose places lead to their lines."""

    proposal: Proposal
    behind: tuple[Anomaly, ...]


def propose(found: Anomalies) -> list[Proposal]:
    """Return the causes that rules can name, that with the most observations first."""
    return [each.proposal for each in name(found)]


def name(found: Anomalies) -> list[Named]:
    """Return the causes that rules can name with what is behind them."""
    named = [each for cause in CAUSES for each in _of_cause(cause, found)]
    return sorted(named, key=lambda each: -len(each.behind))


def _of_cause(cause: Cause, found: Anomalies) -> Iterator[Named]:
    hits = list(_hits(cause, found))
    first = _first(cause, hits, found.clock.tolerance)
    if first is None or _is_contradicted(cause, first, found):
        return
    behind = [first]
    for hit in [*hits, *_victims(first, found)]:
        if _is_independent(hit, behind) and _is_related(hit, first, found):
            behind.append(hit)
    if len(behind) > 1:
        del behind[QUOTES:]
        yield Named(_proposal(cause, first, behind), tuple(each.anomaly for each in behind))


def _victims(first: Hit, found: Anomalies) -> Iterator[Hit]:
    """Yield the trouble of other components that names the one which has the cause."""
    for anomaly in found.blamed.get(first.component, []):
        if anomaly.novelty != "chronic" and anomaly.component != first.component:
            yield Hit(_VICTIM, anomaly)


def _hits(cause: Cause, found: Anomalies) -> Iterator[Hit]:
    """Yield each observation once, under the most telling sign that it shows."""
    for anomaly in found.trouble:
        if anomaly.novelty == "chronic":
            continue
        sign = next((each for each in cause.signs if shows(each, anomaly)), None)
        if sign is not None:
            yield Hit(sign, anomaly)


def shows(sign: Sign, anomaly: Anomaly) -> bool:
    """Return whether an observation says what a sign is about, rather than its opposite."""
    if anomaly.shift is not None:
        is_it = sign.metric is not None and sign.metric.search(anomaly.shift.metric) is not None
        return is_it and _rose(anomaly.shift, sign)
    if sign.logs is None or anomaly.stance != "trouble":
        return False
    return any(stance.says(anomaly.text, each) for each in sign.logs.finditer(anomaly.text))


def _rose(shift: Shift, sign: Sign) -> bool:
    """Return whether a metric rose enough: near its limit, or to a multiple if that is unknown."""
    before, after = shift.before, shift.after
    if after <= before or before < 0:
        return False
    if sign.role == "effect":
        return after >= DOUBLE * before
    if "%" in shift.metric or "percent" in shift.metric.lower():
        return after >= NEAR * 100 and after >= MORE * before
    is_part = after <= 1 + (1 - NEAR)
    return (after >= NEAR and after >= MORE * before) if is_part else after >= MULTIPLE * before


def _first(cause: Cause, hits: list[Hit], tolerance: int) -> Hit | None:
    """Return the most telling sign of the cause itself among those that came first."""
    # After a warning a program goes on: alone it names no cause. Events of Kubernetes know no errors.
    own = [
        each
        for each in hits
        if each.sign.role == "cause"
        and (each.anomaly.level != "warning" or each.anomaly.form.endswith("-events"))
    ]
    timed = [each.anomaly.when for each in own if each.anomaly.when is not None]
    if timed:
        early = min(timed) + tolerance
        own = [each for each in own if each.anomaly.when is not None and each.anomaly.when <= early]
    order = {each.name: number for number, each in enumerate(cause.signs)}
    return min(own, key=lambda each: order[each.sign.name], default=None)


def _is_independent(hit: Hit, others: list[Hit]) -> bool:
    """Return whether an observation is of another source or kind than each of some others."""
    return not any(_kind(hit) == _kind(each) or _is_copy(hit, each) for each in others)


def _kind(hit: Hit) -> tuple[str, ...]:
    anomaly = hit.anomaly
    if hit.sign.is_one:
        return hit.sign.name, anomaly.source
    return hit.sign.name, anomaly.source, anomaly.form, anomaly.component


def _is_copy(hit: Hit, other: Hit) -> bool:
    """Return whether an observation repeats the words of another, as when a line is pasted twice."""
    one, two = (" ".join(each.anomaly.text.split()) for each in (hit, other))
    owners = {hit.anomaly.component, other.anomaly.component} - {""}
    return hit.anomaly.id == other.anomaly.id or (len(owners) < 2 and (one in two or two in one))


def _is_related(hit: Hit, first: Hit, found: Anomalies) -> bool:
    """Return whether an observation can belong to a cause: near it, and an effect not before it."""
    early, late = first.anomaly.when, hit.anomaly.when
    if hit.sign.role == "effect":
        if early is not None and late is not None and late < early - found.clock.tolerance:
            return False
        one, other = first.component, hit.anomaly.component
        near = one == other or not one or not other or one in hit.anomaly.names
        near = near or f"{one}-".startswith(f"{other}-") or f"{other}-".startswith(f"{one}-")
        return near or (other, one) in found.calls
    return True


def _is_contradicted(cause: Cause, first: Hit, found: Anomalies) -> bool:
    """Return whether the same component says later that all is well."""
    if cause.against is None:
        return False
    for each in found.fine:
        if each.component in ("", first.component) and cause.against.search(each.text):
            early, late = first.anomaly.when, each.last
            if early is None or late is None or late >= early:
                return True
    return False


def _proposal(cause: Cause, first: Hit, behind: list[Hit]) -> Proposal:
    component = first.component or next((each.component for each in behind if each.component), "")
    title = cause.title.format(component=component or "the system")
    if not cause.title.startswith("{"):
        title = title[:1].upper() + title[1:]
    said = " ".join(first.anomaly.text.split())
    if len(said) > SAID:
        said = f"{said[:SAID]}\N{HORIZONTAL ELLIPSIS}"
    quotes = tuple(
        Quote(
            each.anomaly.source, each.anomaly.text[:LONGEST], each.sign.role, each.anomaly.places[0]
        )
        for each in behind
    )
    refutation = Refutation(cause.refuted, "absent", cause.test) if cause.refuted else None
    return Proposal(component, cause.kind, f"{title}: {said}", quotes, refutation)
