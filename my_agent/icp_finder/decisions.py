"""Decisions: go on with the candidates there are, or search again. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from typing_extensions import TypedDict

from my_agent.icp_finder.diffs import basis, changed
from my_agent.icp_finder.model import Snapshot
from my_agent.icp_finder.settings import IcpSettings


class Decisions(TypedDict):
    """What to do about candidates; at most one of the two, and why.

    Attributes:
        use_cached: go on with the ones that are stored.
        rerun_icp: search again, if the user agrees.
        reason: a part of a sentence that fits after "because".
    """

    use_cached: bool
    rerun_icp: bool
    reason: str


@dataclass(frozen=True)
class Signals:
    """What is known of a company when its user returns.

    Attributes:
        profile_exists: its website is known.
        icp_confirmed: the user has agreed to profile and ICP.
        profile_stale: the profile is old.
        discovery_stale: the last search is old.
        rule_drift: ICP or search are of another rule than the one in force.
        changes: what has changed since the last search, named as in `diffs.PARTS`.
        recent_candidates: the last search found somebody, not long ago.
    """

    profile_exists: bool = False
    icp_confirmed: bool = False
    profile_stale: bool = False
    discovery_stale: bool = False
    rule_drift: bool = False
    changes: tuple[str, ...] = ()
    recent_candidates: bool = False


def decide(signals: Signals) -> Decisions:
    """The decision for what is known; every combination has one."""
    if not signals.profile_exists:
        return _neither("nothing is known of this company yet")
    if not signals.icp_confirmed:
        return _neither("the ideal customer profile is not confirmed yet")
    reasons = list(_against(signals))
    if reasons:
        return {"use_cached": False, "rerun_icp": True, "reason": _listed(reasons)}
    reason = "the candidates are recent and nothing has changed since"
    return {"use_cached": True, "rerun_icp": False, "reason": reason}


def signals(snapshot: Snapshot, rule_name: str, settings: IcpSettings, moment: datetime) -> Signals:
    """What a snapshot says at a moment.

    Args:
        rule_name: the rule in force.
        settings: how many days make something stale.
        moment: aware.
    """
    profile, rule, discovery = snapshot.profile, snapshot.rule, snapshot.discovery
    if profile is None:
        return Signals()
    found_old = discovery is not None and _is_older(
        discovery.at, moment, settings.discovery_staleness_days
    )
    return Signals(
        profile_exists=True,
        icp_confirmed=profile.confirmed and rule is not None and rule.confirmed,
        profile_stale=_is_older(profile.updated_at, moment, settings.profile_staleness_days),
        discovery_stale=found_old,
        rule_drift=any(each and each != rule_name for each in _rules(snapshot)),
        changes=(
            changed(discovery.basis, basis(profile.company, rule.icp))
            if discovery is not None and rule is not None
            else ()
        ),
        recent_candidates=discovery is not None and discovery.candidates > 0 and not found_old,
    )


def _neither(reason: str) -> Decisions:
    return {"use_cached": False, "rerun_icp": False, "reason": reason}


def _against(signals: Signals) -> list[str]:
    """Why the stored candidates will not do."""
    reasons = []
    if signals.changes:
        are = "has" if len(signals.changes) == 1 and signals.changes[0] == "website" else "have"
        reasons.append(f"the {_listed(list(signals.changes))} {are} changed since the last search")
    if signals.rule_drift:
        reasons.append("the rule in force is another one")
    if signals.discovery_stale:
        reasons.append("the last search is out of date")
    if signals.profile_stale:
        reasons.append("the company's profile is out of date")
    if not reasons and not signals.recent_candidates:
        reasons.append("there are no candidates yet")
    return reasons


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _is_older(then: datetime, moment: datetime, days: float) -> bool:
    return moment - then > timedelta(days=days)


def _rules(snapshot: Snapshot) -> tuple[str | None, str | None]:
    """The rules that ICP and search are of."""
    rule, discovery = snapshot.rule, snapshot.discovery
    return (rule.name if rule else None, discovery.rule_name if discovery else None)
