"""Undoing: take back what a message has changed. What was sent or searched stays."""

from collections.abc import Mapping
from typing import cast

from my_agent.icp_finder.model import Company, Icp, Scored, Site
from my_agent.icp_finder.records import feedback, store
from my_agent.icp_finder.records.feedback import Feedback, Verdict
from my_agent.icp_finder.state import State, Undo, company_of

# Changes of a thread that can be taken back.
MOST = 20


def with_profile(
    state: State, site: Site | None, customers: list[Site], icp: Icp | None
) -> list[Undo]:
    """Return the changes that can be taken back, with this one of the profile if it is one."""
    before, changes = company_of(state), list(state.get("undo") or [])
    if before == (site, customers, icp) or before[0] is None:
        return changes
    return [*changes, profile_of(state)][-MOST:]


def profile_of(state: State) -> Undo:
    """Return what brings the present company and profile back."""
    site, customers, icp = company_of(state)
    confirmed = bool(state.get("confirmed"))
    return Undo(what="profile", site=site, customers=customers, icp=icp, confirmed=confirmed)


def agreed(state: State) -> list[Undo]:
    """Return the changes that can be taken back once the company is confirmed.

    What has made up the company and its first profile is agreed.
    """
    own, kept = state.get("site"), list[Undo]()
    for each in state.get("undo") or []:
        site, icp = each.get("site"), each.get("icp")
        is_own = site and own and site["domain"] == own["domain"] and icp and icp["industries"]
        kept += [each] if each["what"] == "feedback" or is_own else []
    return kept


def with_feedback(changes: list[Undo], keys: list[str], said: Mapping[str, Feedback]) -> list[Undo]:
    """Return the changes that can be taken back, with feedback on candidates.

    Args:
        changes: the changes so far.
        keys: the candidates.
        said: the feedback before, by key.
    """
    before = {key: [said[key].verdict, said[key].reason] if key in said else None for key in keys}
    return [*changes, Undo(what="feedback", said=before)][-MOST:]


async def take_back(
    tenant_id: str, rule_name: str, last: Undo, found: Mapping[str, Scored], *, confirmed: bool
) -> None:
    """Take back a change in what is stored, among candidates that are known by their keys.

    A company that is `confirmed` stays so.
    """
    if last["what"] == "profile":
        if (site := last["site"]) is not None:
            company: Company = {"site": site, "customers": last["customers"]}
            stays = confirmed or last["confirmed"]
            await save(tenant_id, rule_name, company, last["icp"], confirmed=stays, was_read=False)
        return
    for key, before in last["said"].items():
        if before is None:
            await feedback.forget(tenant_id, rule_name, [key])
        elif key in found:
            verdict, reason = cast("Verdict", before[0]), before[1]
            await feedback.save(tenant_id, rule_name, verdict, [found[key]], reason)


async def save(
    tenant_id: str,
    rule_name: str,
    company: Company,
    icp: Icp | None,
    *,
    confirmed: bool,
    was_read: bool = True,
) -> None:
    """Store a company, and its profile if there is one.

    Args:
        tenant_id: the tenant.
        rule_name: the rule in force.
        company: the company.
        icp: its profile.
        confirmed: whether the user has confirmed both.
        was_read: whether the company's websites were read now.
    """
    await store.save_profile(tenant_id, company, confirmed=confirmed, was_read=was_read)
    if icp is not None:
        domain = company["site"]["domain"]
        await store.save_rule(tenant_id, domain, rule_name, icp, confirmed=confirmed)
