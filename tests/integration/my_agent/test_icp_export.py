"""`GET /export/latest_scores.csv`: the latest scores of the caller's tenant."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from my_agent.icp_finder.model import WEIGHTS, Candidate, Score, Scored
from my_agent.icp_finder.records import export, feedback, store
from my_agent.spreadsheets import harmless
from tests.support import databases
from tests.support.policy import ORIGIN, SECRET, Member, member
from tests.support.processes import ROOT, Running, environment, free_port, running, threadhold
from tests.support.products import using

pytestmark = pytest.mark.usefixtures("each_database")

PATH = "/export/latest_scores.csv"
RULE = "Default ICP"
HOSTILE = (
    *('=HYPERLINK("http://evil.example")', "+1+1", "-2", "@SUM(A1)", "\t=1", " =1", "\uff1d1"),
    # Behind a byte order mark, a zero-width space, a direction mark, a filler, a combining mark.
    *("\ufeff=1", "\u200b=1", "\u200b\ufeff +1", "\u202e@1", "\u3164=1", "\u034f=1", "\ufe66x"),
    *("\u2212x", "\u2060x"),
)


@pytest.fixture(scope="module")
def server(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a server of the ICP finder. The tests write to its database, too."""
    folder, port = tmp_path_factory.mktemp("export"), free_port()
    graphs = {"icp_finder": f"{ROOT}/my_agent/icp_finder/graph.py:graph"}
    config = {"graphs": graphs, "auth": {"path": "hooks.auth:auth"}}
    (folder / "langgraph.json").write_text(json.dumps(config))
    url = databases.url(folder / "data.db")
    command = threadhold("serve", "--config", folder / "langgraph.json", "--port", str(port))
    env = environment(JWT_SECRET=SECRET, CORS_ALLOW_ORIGINS=ORIGIN)
    with running([*command, "--database-url", url], port, folder, env) as started, using(url):
        yield started


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid4().hex[:8]}"


@pytest.fixture
async def ada(server: Running, tenant: str) -> AsyncIterator[Member]:
    async with member(server, "ada", tenant) as client:
        yield client


async def keep(
    tenant: str, *names: str, of: str = "h1", domain: str = "acme.com", rule: str = RULE
) -> None:
    """Save a search with these candidates, the best one first."""
    basis: Any = {"website": domain, "customers": [], "icp": {}}
    those = [
        Scored(
            Candidate(key=f"uen:{name}", name=name, source="register", ssic=["62011", "46900"]),
            Score(1 - place / 10_000, {"industry": 0.35, "size": 0.05}),
        )
        for place, name in enumerate(names)
    ]
    await store.save_discovery(tenant, rule, of, basis, those)


async def rows(client: Member) -> list[dict[str, str]]:
    answer = await client.http.get(PATH)
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text)))


async def test_scores_are_sorted_and_have_parts(ada: Member, tenant: str) -> None:
    await keep(tenant, "BEST", "SECOND, LTD")
    answer = await ada.http.get(PATH)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "latest_scores.csv" in answer.headers["content-disposition"]
    assert answer.headers["cache-control"] == "no-store"
    first, second = await rows(ada)
    assert tuple(first) == export.COLUMNS
    assert (first["name"], first["rank"], first["score"]) == ("BEST", "1", "1.0")
    assert (second["name"], second["rank"], second["score"]) == ("SECOND, LTD", "2", "0.9999")
    assert (first["company"], first["rule"], first["ssic"]) == ("acme.com", RULE, "62011 46900")
    assert (first["score_industry"], first["score_size"], first["score_region"]) == (
        *("0.35", "0.05"),
        "",
    )
    assert {f"score_{name}" for name in WEIGHTS} <= set(first)


async def test_export_says_what_was_rejected_and_accepted(ada: Member, tenant: str) -> None:
    names = ["NEW", "GONE", "KEPT", "LIKED"]
    await keep(tenant, *names)
    said: list[tuple[str, feedback.Verdict]]
    said = [("GONE", "rejected"), ("KEPT", "kept"), ("LIKED", "liked")]
    for name, verdict in said:
        one = Candidate(key=f"uen:{name}", name=name, source="register")
        await feedback.save(tenant, RULE, verdict, [Scored(one, Score(0, {}))])
    found = {row["name"]: row["verdict"] for row in await rows(ada)}
    assert found == dict(zip(names, ["", "rejected", "accepted", "accepted"], strict=True))


async def test_no_candidates_export_only_the_header(ada: Member) -> None:
    answer = await ada.http.get(PATH)
    assert answer.status_code == 200
    assert answer.text.strip() == ",".join(export.COLUMNS)


async def test_export_has_last_search_of_each_company_and_rule(ada: Member, tenant: str) -> None:
    await keep(tenant, "OLD", of="h1")
    await keep(tenant, "NEW", of="h2")
    await keep(tenant, "OTHER RULE", of="h3", rule="Another")
    await keep(tenant, "OTHER COMPANY", of="h4", domain="beta.com")
    found = [(row["company"], row["rule"], row["name"]) for row in await rows(ada)]
    assert found == [
        ("acme.com", "Another", "OTHER RULE"),
        ("acme.com", RULE, "NEW"),
        ("beta.com", RULE, "OTHER COMPANY"),
    ]


async def test_export_is_per_tenant(server: Running, ada: Member, tenant: str) -> None:
    await keep(tenant, "OURS")
    await keep(f"{tenant}-2", "THEIRS")
    async with (
        member(server, "bob", tenant) as bob,
        member(server, "ada", f"{tenant}-2") as eve,
        member(server, "root", f"{tenant}-3", "tenant_admin", "operator") as admin,
    ):
        assert [row["name"] for row in await rows(ada)] == ["OURS"]
        assert [row["name"] for row in await rows(bob)] == ["OURS"]
        assert [row["name"] for row in await rows(eve)] == ["THEIRS"]
        assert await rows(admin) == []
        # Only the token determines the tenant.
        wanted = {"tenant_id": tenant, "x-tenant-id": tenant}
        answer = await eve.http.get(PATH, params=wanted, headers=wanted)
        assert "OURS" not in answer.text
        assert "THEIRS" in answer.text


async def test_export_rejects_invalid_tokens(server: Running) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        headers = {"authorization": "Bearer nonsense", "origin": ORIGIN}
        answer = await http.get(PATH, headers=headers)
        assert answer.status_code == 401
        assert answer.json() == {"detail": "A valid bearer token is needed"}
        assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_export_follows_the_platforms_cors(ada: Member) -> None:
    answer = await ada.http.get(PATH, headers={"origin": ORIGIN})
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    answer = await ada.http.get(PATH, headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers


async def test_names_that_look_like_formulas_are_escaped(ada: Member, tenant: str) -> None:
    await keep(tenant, *HOSTILE)
    found = [row["name"] for row in await rows(ada)]
    assert found == [f"'{name}" for name in HOSTILE]


async def test_large_export_is_streamed(ada: Member, tenant: str) -> None:
    names = [f"C{number:04}" for number in range(2 * export.BATCH + 7)]
    await keep(tenant, *names)
    pieces = [piece async for piece in export.latest_scores(tenant)]
    assert [piece.count("\n") for piece in pieces] == [1, export.BATCH, export.BATCH, 7]
    async with ada.http.stream("GET", PATH) as answer:
        assert "content-length" not in answer.headers
        text = (await answer.aread()).decode()
    assert [row["name"] for row in csv.DictReader(io.StringIO(text))] == names


async def test_change_during_export_duplicates_no_row(server: Running, tenant: str) -> None:
    names = [f"C{number:04}" for number in range(export.BATCH + 3)]
    await keep(tenant, *names)
    text, changed = "", False
    async for piece in export.latest_scores(tenant):
        text += piece
        if piece.count("\n") == export.BATCH and not changed:
            changed = True
            # Reverse the ranking.
            await keep(tenant, *reversed(names))
    assert changed
    found = [row["name"] for row in csv.DictReader(io.StringIO(text))]
    assert found == names


async def test_foreign_graph_of_same_name_has_no_export(tmp_path: Path) -> None:
    from server.routes import offered

    ours = offered({"icp_finder": f"{ROOT}/my_agent/icp_finder/graph.py:graph"})
    assert PATH in {each.path for each in ours}
    assert offered({"icp_finder": f"{tmp_path}/graph.py:graph"}) == offered({}) == []


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        *((each, f"'{each}") for each in HOSTILE),
        *(("\r=1", "'\r=1"), ("\n=1", "'\n=1"), ("a\0b", "ab"), ("Acme = good", "Acme = good")),
        *(("", ""), (None, None), (0.5, 0.5), (-1, -1), ("65 1234", "65 1234")),
    ],
)
def test_cells_are_escaped(cell: object, shown: object) -> None:
    assert harmless(cell) == shown
