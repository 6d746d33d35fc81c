"""Situations: reach where a turn begins, by storing records and sending messages."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from sqlalchemy import Connection, select, update

from bench.turns import Turn
from bench.turns.offline import ABOUT, known_site
from bench.turns.talk import Talk
from bench.turns.values import as_stored
from my_agent.icp_finder.model import Candidate, Company, Icp, Score, Scored
from my_agent.icp_finder.records import feedback, store
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.records.tables import discoveries
from my_agent.tables import run

RULE = "Default ICP"
CUSTOMERS = 5
# Days; older than what counts as stale.
OLD = 30
# The finder asks for these while it shows the whole profile.
WITHIN = {"regions": "confirm_icp", "sizes": "confirm_icp", "keywords": "confirm_icp"}
_DECLINED = {"enrich": "later", "rerun": "no"}
_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)+")


async def reach(talk: Talk, turn: Turn) -> tuple[str, str]:
    """Bring a conversation to the situation of a turn.

    Returns:
        The kind of the question that should wait, and of the one that waits.
    """
    situation = turn["situation"]
    asked = situation["question"]
    kind = asked["kind"] if asked else "none"
    if not situation["fields"] and kind == "none":
        return kind, "none"
    await _store(talk, situation, kind)
    await talk.say("?" if kind == "website" else "Hello")
    if kind in ("none", "context_change", "domain", "start_over"):
        # What the finder asks by itself is declined.
        if (waits := await talk.question()) in _DECLINED:
            await talk.say(_DECLINED[waits])
        if kind == "context_change":
            await talk.say("keywords: something new")
        elif kind == "domain":
            [named] = _DOMAIN.findall(asked["text"])
            await talk.say(named)
        elif kind == "start_over":
            await talk.say("start over")
    await _judge(talk, situation["listed"])
    return WITHIN.get(kind, kind), await talk.question()


async def _store(talk: Talk, situation: Mapping[str, Any], kind: str) -> None:
    """Store what is known in a situation."""
    fields, listed = situation["fields"], situation["listed"]
    if kind == "website" or not fields:
        return
    if kind in ("customers", "industries"):
        await _know(talk.tenant, fields, confirmed=False, fill=kind == "industries", about="")
    elif kind in ("confirm_icp", *WITHIN) or (kind == "start_over" and not listed):
        company = await _know(talk.tenant, fields, confirmed=False)
        await _profile(talk.tenant, company, fields, confirmed=False)
    else:
        company = await _know(talk.tenant, fields, confirmed=True)
        icp = await _profile(talk.tenant, company, fields, confirmed=True)
        of, found = basis(company, icp), [_scored(each) for each in listed]
        await store.save_discovery(talk.tenant, RULE, icp_hash(of), of, found)
        if kind == "rerun":
            await _age(talk.tenant)


async def _know(
    tenant: str,
    fields: Mapping[str, Any],
    *,
    confirmed: bool,
    fill: bool = True,
    about: str = ABOUT,
) -> Company:
    """Store the company; `fill` adds customers until there are enough."""
    named = list(fields.get("customers", []))
    if fill:
        named += [f"c{at}.example" for at in range(1, CUSTOMERS + 1 - len(named))]
    company: Company = {
        "site": known_site(fields["website"], about),
        "customers": [known_site(each, about) for each in named],
    }
    await store.save_profile(tenant, company, confirmed=confirmed)
    return company


async def _profile(
    tenant: str, company: Company, fields: Mapping[str, Any], *, confirmed: bool
) -> Icp:
    icp: dict[str, list[str]] = {
        name: list(fields.get(name, [])) for name in ("industries", "regions", "keywords")
    }
    icp["sizes"] = as_stored(fields.get("sizes", []))
    if fields.get("exclusions"):
        icp["exclusions"] = list(fields["exclusions"])
    stored = cast("Icp", icp)
    await store.save_rule(tenant, company["site"]["domain"], RULE, stored, confirmed=confirmed)
    return stored


async def _age(tenant: str) -> None:
    """Make the last search stale."""
    rows = discoveries.c.tenant_id == tenant

    def work(connection: Connection) -> None:
        at = connection.execute(select(discoveries.c.discovered_at).where(rows)).scalar_one()
        then = at - timedelta(days=OLD)
        connection.execute(update(discoveries).where(rows).values(discovered_at=then))

    await run(work, tenant, write=True)


async def _judge(talk: Talk, listed: Sequence[Mapping[str, Any]]) -> None:
    """Store verdicts once the list is shown, since a rejected candidate would get no number."""
    for each in listed:
        if each["verdict"]:
            await feedback.save(talk.tenant, RULE, each["verdict"], [_scored(each)])


def key(listed: Mapping[str, Any]) -> str:
    """Return the key of a listed candidate."""
    return f"domain:{_domain(listed)}"


def _domain(listed: Mapping[str, Any]) -> str:
    return str(listed["domain"] or f"{listed['number']}.example")


def _scored(listed: Mapping[str, Any]) -> Scored:
    number, name, website = listed["number"], listed["name"], f"https://{_domain(listed)}"
    details = {"status": "read", "website": website, "pages": [website], "about": name}
    total = round(0.9 - number / 50, 3)
    candidate = Candidate(
        key(listed),
        name,
        "web",
        website=website,
        about=f"{name} sells to shops.",
        details=details if listed["enriched"] else {},
    )
    return Scored(candidate, Score(total, {"industry": round(total / 2, 3), "region": 0.15}))
