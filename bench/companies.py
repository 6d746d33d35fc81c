"""Fill the ICP finder's tables with companies of many tenants."""

from collections.abc import Sequence
from pathlib import Path

from my_agent.icp_finder.model import Candidate, Company, Icp, Score, Scored, Site
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.diffs import basis, icp_hash
from my_agent.icp_finder.settings import IcpSettings
from my_agent.tables import tables
from my_agent.user import LOCAL_TENANT

OTHERS = 200
CANDIDATES = 50
ICP: Icp = {
    "industries": ["Freight transport by road", "Warehousing"],
    "sizes": ["11-50", "51-200"],
    "regions": ["Singapore"],
    "keywords": ["cold chain", "last mile"],
}


def website(number: int) -> str:
    """Return the website of a company of the local tenant."""
    return f"http://company-{number}.example"


async def save(file: Path, count: int) -> None:
    """Save `count` companies with candidates for the local tenant, and OTHERS for other tenants."""
    tables.use(f"sqlite:///{file}")
    try:
        for number in range(count):
            await _company(LOCAL_TENANT, website(number))
        for number in range(OTHERS):
            await _company(f"tenant-{number}", website(number))
        tables.close()
    finally:
        tables.use(None)


async def _company(tenant_id: str, url: str) -> None:
    company: Company = {
        "site": _site(url),
        "customers": [_site(f"{url.removesuffix('.example')}-{n}.example") for n in range(5)],
    }
    rule = IcpSettings().icp_rule_name
    of = basis(company, ICP)
    await store.save_profile(tenant_id, company, confirmed=True)
    await store.save_rule(tenant_id, company["site"]["domain"], rule, ICP, confirmed=True)
    await store.save_discovery(tenant_id, rule, icp_hash(of), of, _found())


def _site(url: str) -> Site:
    domain = url.removeprefix("http://")
    return {"website": url, "domain": domain, "name": domain, "about": "We move freight. " * 60}


def _found() -> Sequence[Scored]:
    return [
        Scored(
            Candidate(f"uen:{n}", f"Company {n}", "register", ssic=("49231",), region="Singapore"),
            Score(1 - n / CANDIDATES, {"industry": 0.35, "region": 0.15}),
        )
        for n in range(CANDIDATES)
    ]
