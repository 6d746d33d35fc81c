"""Row-level security of the graphs' tables when no statement filters by tenant.

The readers here are those of the product routes. The routes that read threads are tested over HTTP
in test_row_security.py.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from my_agent.chat.documents import index
from my_agent.chat.documents.ingestion import ingest
from my_agent.chat.documents.search import search
from my_agent.companies import register as registered
from my_agent.icp_finder.enrichment import jobs
from my_agent.icp_finder.model import Candidate, Icp, Score, Scored, Site
from my_agent.icp_finder.records import store
from my_agent.icp_finder.records.export import latest_scores
from my_agent.icp_finder.search import register
from my_agent.tables import tables
from tests.support import databases, products, unscoped
from threadhold.tables import SHARED

pytestmark = [pytest.mark.usefixtures("each_database"), pytest.mark.only("postgresql")]

WORD, RULE, HASH = "rosebud", "Default ICP", "hash"
QUESTION = "How many levels does the tower have?"
CODE = "62011"
REGISTER = f"""uen,entity_name,entity_status_description,primary_ssic_code
201900001A,{WORD.upper()} PTE. LTD.,Live Company,{CODE}
"""
ICP: Icp = {"industries": [WORD], "sizes": [], "regions": [], "keywords": []}


async def fill(tenant: str, folder: Path) -> None:
    """Store a document, a company, a profile, a search and its scores that contain the word."""
    document, companies = folder / "tower.md", folder / "register.csv"
    document.write_text(f"# The tower\n\nIt has nine levels, one of which is called {WORD}.\n")
    companies.write_text(REGISTER)
    assert (await asyncio.to_thread(ingest, document, tenant)).added == 1
    bad: list[Any] = []
    await asyncio.to_thread(registered.ingest, companies, tenant, report=bad.append)
    assert bad == []
    domain = f"{WORD}.com"
    site: Site = {"website": f"https://{domain}", "domain": domain, "name": "", "about": ""}
    basis: Any = {"website": domain, "customers": [], "icp": ICP}
    known = Candidate(key="uen:1", name=WORD, source="register", details={"about": WORD})
    found = Scored(known, Score(0.5, {}))
    await store.save_profile(tenant, {"site": site, "customers": []}, confirmed=True)
    await store.save_rule(tenant, domain, RULE, ICP, confirmed=True)
    await store.save_discovery(tenant, RULE, HASH, basis, [found])


async def documents(tenant: str) -> Any:
    return (await asyncio.to_thread(search, QUESTION, tenant)).passages


async def files(tenant: str) -> Any:
    def work(connection: Connection) -> Any:
        return index.known_files(connection, tenant, "/") or None

    return await tables.run(work, tenant)


async def companies(tenant: str) -> Any:
    site: Site = {"website": "https://x.com", "domain": "x.com", "name": "", "about": ""}
    asked: Icp = {**ICP, "industries": [CODE]}
    given = await register.rank(tenant, {"site": site, "customers": []}, asked, limit=10)
    return given.found


async def scores(tenant: str) -> Any:
    _, *lines = [line async for line in latest_scores(tenant)]
    return lines


async def snapshot(tenant: str) -> Any:
    found = await store.load_snapshot(tenant, domain=f"{WORD}.com", rule_name=RULE)
    return None if found == type(found)() else found


async def candidates(tenant: str) -> Any:
    return await store.best_candidates(tenant, RULE, HASH, limit=10)


async def versions(tenant: str) -> Any:
    return await store.versions(tenant, RULE, HASH)


async def details(tenant: str) -> Any:
    return await store.known_details(tenant, ["uen:1"])


READERS = [documents, files, companies, scores, snapshot, candidates, versions, details]


@pytest.fixture
async def filled(tmp_path: Path) -> AsyncIterator[str]:
    """Fill the tables for one tenant and return its name."""
    with products.using(databases.url(tmp_path / "data.db")):
        await fill("acme", tmp_path)
        yield "acme"


async def test_statements_without_tenant_filter_see_only_their_tenant(filled: str) -> None:
    async def found(tenant: str) -> dict[str, Any]:
        return {read.__name__: await read(tenant) for read in READERS}

    own = await found(filled)
    assert all(own.values()), own
    assert WORD in repr(own).lower()
    assert not any((await found("acm")).values())
    with unscoped.without_conditions():
        # A scope of all tenants finds every row, because no statement filters by tenant.
        assert {name for name, each in (await found(SHARED)).items() if not each} == set()
        assert await found(filled) == own
        assert not any((await found("acm")).values())
        # Other tenants cannot change or delete the rows either.
        assert not await jobs.find("acm", RULE, HASH)
        assert await store.count_candidates("acm", RULE, HASH) == 0
        await store.save_discovery(
            "acm", RULE, HASH, {"website": "x.com", "customers": [], "icp": ICP}, []
        )
        await tables.run(
            lambda c: index.forget(c, "acm", [str(each) for each in own["files"]]),
            "acm",
            write=True,
        )
    assert await found(filled) == own
