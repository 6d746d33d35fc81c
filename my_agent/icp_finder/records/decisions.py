"""Decisions: use the stored candidates or search again. Pure functions."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from typing_extensions import TypedDict

from my_agent.icp_finder.model import Snapshot
from my_agent.icp_finder.records.diffs import basis, changed
from my_agent.icp_finder.reports import listed
from my_agent.icp_finder.settings import IcpSettings


class Decisions(TypedDict):
    """The decision about candidates. At most one of the two flags is set."""

    use_cached: bool  # continue with the stored candidates
    rerun_icp: bool  # search again, if the user agrees
    reason: str  # a clause that fits after "because"


@dataclass(frozen=True)
class Signals:
    """The facts about a company that the decision depends on. Changes are names of `diffs.PARTS`."""

    profile_exists: bool = False  # the company's website is stored
    icp_confirmed: bool = False  # the user has confirmed profile and ICP
    profile_stale: bool = False  # the profile is too old
    discovery_stale: bool = False  # the last search is too old
    rule_drift: bool = False  # the ICP or the last search belongs to a rule that is not in force
    changes: tuple[str, ...] = ()  # what has changed since the last search
    recent_candidates: bool = False  # the last search found candidates and is not stale
    changed_elsewhere: tuple[str, ...] = ()  # by another session since this thread's last message


def decide(signals: Signals) -> Decisions:
    """Return the decision; every combination of signals has one."""
    uses, reruns = False, False
    if not signals.profile_exists:
        reason = "nothing is known of this company yet"
    elif not signals.icp_confirmed:
        reason = "the ideal customer profile is not confirmed yet"
    elif reasons := _reasons_to_search(signals):
        reruns, reason = True, listed(reasons)
    elif elsewhere := signals.changed_elsewhere:
        uses, reason = True, f"another session has changed the {listed(elsewhere)} and searched"
    else:
        uses, reason = True, "the candidates are recent and nothing has changed since"
    return {"use_cached": uses, "rerun_icp": reruns, "reason": reason}


def signals(snapshot: Snapshot, rule_name: str, settings: IcpSettings, at: datetime) -> Signals:
    """Derive the signals from a snapshot, for the rule in force and the current time in UTC."""
    profile, rule, discovery = snapshot.profile, snapshot.rule, snapshot.discovery
    if profile is None:
        return Signals()
    days = settings.discovery_staleness_days
    is_stale = discovery is not None and is_older(discovery.at, at, days)
    named = (rule and rule.name, discovery and discovery.rule_name)
    changes: tuple[str, ...] = ()
    if discovery is not None and rule is not None:
        changes = changed(discovery.basis, basis(profile.company, rule.icp))
    return Signals(
        profile_exists=True,
        icp_confirmed=profile.confirmed and rule is not None and rule.confirmed,
        profile_stale=is_older(profile.updated_at, at, settings.profile_staleness_days),
        discovery_stale=is_stale,
        rule_drift=any(each not in (None, rule_name) for each in named),
        changes=changes,
        recent_candidates=discovery is not None and discovery.candidates > 0 and not is_stale,
    )


def _reasons_to_search(signals: Signals) -> list[str]:
    """Return the reasons against the stored candidates."""
    reasons = []
    if signals.changes:
        are = "has" if signals.changes == ("website",) else "have"
        reasons.append(f"the {listed(signals.changes)} {are} changed since the last search")
    if signals.rule_drift:
        reasons.append("a different rule is in force")
    if signals.discovery_stale:
        reasons.append("the last search is out of date")
    if signals.profile_stale:
        reasons.append("the company's profile is out of date")
    if not reasons and not signals.recent_candidates:
        reasons.append("there are no candidates yet")
    return reasons


def is_older(then: datetime, at: datetime, days: float) -> bool:
    """Return whether more than a number of days lie between two times."""
    return at - then > timedelta(days=days)
