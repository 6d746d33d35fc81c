"""States, companies and records for tests of the ICP finder's nodes."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from langchain_core.messages import HumanMessage
from sqlalchemy import update

from my_agent.icp_finder.model import Candidate, Company, Icp, Score, Scored, Site
from my_agent.icp_finder.reading.heard import Heard, nothing
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.state import Found, State
from my_agent.tables import tables

RULE = "Default ICP"
HAULIER = "A trucking company: freight trucking by road, trucks for every freight, road freight."
ICP: Icp = {"industries": ["Road freight"], "sizes": [], "regions": [], "keywords": []}


def config(tenant: str = "acme", user: str = "ann", thread_id: str = "t") -> Any:
    user_fields = {"identity": user, "tenant_id": tenant}
    # Values that a client can write name another tenant; they must be ignored.
    return {
        "configurable": {
            "thread_id": thread_id,
            "langgraph_auth_user": user_fields,
            "tenant_id": "other",
        },
        "metadata": {"tenant_id": "other"},
    }


def site(name: str, about: str = "") -> Site:
    return {"website": f"https://{name}", "domain": name, "name": name, "about": about}


COMPANY: Company = {"site": site("acme.com"), "customers": [site(f"c{n}.com") for n in range(5)]}
WHICH: Found = {"rule_name": RULE, "icp_hash": icp_hash(basis(COMPANY, ICP))}
LAST: Found = {"rule_name": RULE, "icp_hash": "0" * 16}


def heard(**said: Any) -> Heard:
    """Return what a message says, by the fields of `Heard` that it fills."""
    return cast("Heard", {**nothing(), **said})


def state(text: str = "", **values: Any) -> State:
    base: dict[str, Any] = {
        "messages": [HumanMessage(text)] if text else [],
        "thread_id": "t",
        "rule_name": RULE,
        "heard": nothing(),
        "notes": [],
    }
    found = base | values
    return cast("State", found)


def confirmed(text: str = "", **values: Any) -> State:
    return state(text, **{"confirmed": True, **COMPANY, "icp": ICP, **values})


def updates(command: Any) -> dict[str, Any]:
    found: dict[str, Any] = command.update
    return found


def said(command: Any) -> str:
    return str(updates(command)["messages"][-1].text)


async def saved(*, discovery: bool = True, tenant: str = "acme") -> None:
    await store.save_profile(tenant, COMPANY, confirmed=True)
    await store.save_rule(tenant, "acme.com", RULE, ICP, confirmed=True)
    if discovery:
        of = basis(COMPANY, ICP)
        await store.save_discovery(tenant, RULE, icp_hash(of), of, [scored("domain:a.com")])


def scored(key: str, total: float = 0.5) -> Scored:
    return Scored(Candidate(key, key, "web"), Score(total, {"industry": total}))


async def age(table: Any, column: str, days: float) -> None:
    then = datetime.now(UTC) - timedelta(days=days)
    change = update(table).values({column: then})
    await tables.run(lambda connection: connection.execute(change), write=True)
