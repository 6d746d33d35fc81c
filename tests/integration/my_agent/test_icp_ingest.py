"""`python -m server ingest FILE.csv`, and searching the ingested companies."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bench.icp import made_up
from my_agent.companies import register as registered
from my_agent.companies import ssic
from my_agent.icp_finder.model import Candidate, Icp
from my_agent.icp_finder.search import register
from my_agent.tables import tables
from server.cli import main
from tests.support import databases
from tests.support.processes import ROOT
from tests.support.products import using

pytestmark = pytest.mark.usefixtures("each_database")

MADE_UP = ROOT / "my_agent/companies/reference/made_up_register.csv"
HEADER = "uen,entity_name,entity_status_description,primary_ssic_code,secondary_ssic_code\n"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """Yield the path that identifies the database."""
    path = tmp_path / "data.db"
    with using(databases.url(path)):
        yield path


def ingest(path: Path, db: Path, *options: str) -> Result:
    arguments = ["ingest", str(path), "--database-url", databases.url(db), *options]
    return CliRunner().invoke(main, arguments)


def count(db: Path, where: str = "true") -> int:
    [(found,)] = databases.execute(db, f"SELECT count(*) FROM companies WHERE {where}")
    return int(found)


def icp(*, regions: list[str] | None = None, keywords: list[str] | None = None) -> Icp:
    return {"industries": [], "sizes": [], "regions": regions or [], "keywords": keywords or []}


def uens(found: list[Candidate]) -> list[str | None]:
    return [candidate.uen for candidate in found]


def write(path: Path, *rows: str, header: str = HEADER, encoding: str = "utf-8") -> Path:
    path.write_text(header + "".join(f"{row}\n" for row in rows), encoding=encoding)
    return path


def test_ingesting_twice_stores_the_register_once(file: Path) -> None:
    for _ in range(2):
        done = ingest(MADE_UP, file)
        assert done.exit_code == 0, done.output
        assert f"{MADE_UP}: {made_up.COUNT} companies, 0 lines skipped" in done.output
        assert count(file) == made_up.COUNT


def test_ingesting_again_updates_companies(file: Path, tmp_path: Path) -> None:
    csv = write(
        tmp_path / "r.csv", "201912345K,OLD NAME,Live,62011,na", "53012345X,B,Live,56111,na"
    )
    assert ingest(csv, file).exit_code == 0
    write(csv, "201912345k,NEW NAME,Struck Off,62021,na")
    assert ingest(csv, file).exit_code == 0
    assert count(file) == 2
    assert count(file, "name = 'NEW NAME' AND NOT is_live AND primary_ssic = '62021'") == 1


def test_bad_rows_are_reported_with_line_and_skipped(file: Path, tmp_path: Path) -> None:
    csv = write(
        tmp_path / "r.csv",
        *("201912345K,A,Live,62011,na", "na,B,Live,62011,na", "201912346K,C,Live,nonsense,na"),
        *("201912347K,D,Live,62011", "201912348K,E,Live,62011,na"),
    )
    done = ingest(csv, file)
    assert done.exit_code == 0
    assert [line for line in done.stderr.splitlines() if line.startswith("skipped")] == [
        "skipped line 3: uen is missing",
        "skipped line 4: primary_ssic_code 'nonsense' is invalid",
        "skipped line 5: the row has more or fewer cells than columns",
    ]
    assert "2 companies, 3 lines skipped" in done.stdout
    assert count(file) == 2


def test_bad_rows_beyond_a_limit_are_only_counted(file: Path, tmp_path: Path) -> None:
    csv = write(tmp_path / "r.csv", *["na,B,Live,62011,na"] * 1200)
    done = ingest(csv, file)
    assert done.exit_code == 0
    assert "and 1150 more lines were skipped" in done.stderr
    assert "0 companies, 1,200 lines skipped" in done.stdout


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_utf8_with_and_without_bom_is_read(file: Path, tmp_path: Path, encoding: str) -> None:
    csv = write(tmp_path / "r.csv", "201912345K,CAF\u00c9 \u65b0,Live,56111,na", encoding=encoding)
    assert ingest(csv, file).exit_code == 0
    assert count(file, "name = 'CAF\u00c9 \u65b0'") == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "The first line lacks uen"),
        (b"uen,entity_name\n1,2\n", "The first line lacks entity_status_description, primary_ssic"),
        (
            HEADER.encode() + "201912345K,CAF\u00c9,Live,56111,na\n".encode("latin-1"),
            "not in UTF-8",
        ),
    ],
)
def test_invalid_register_is_a_clear_error(
    file: Path, tmp_path: Path, content: bytes, sentence: str
) -> None:
    (tmp_path / "r.csv").write_bytes(content)
    done = ingest(tmp_path / "r.csv", file)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert sentence in done.stderr
    assert "Traceback" not in done.output


def test_twenty_thousand_rows_are_ingested(file: Path, tmp_path: Path) -> None:
    rows = (f"2019{number:05}K,COMPANY {number},Live Company,62011,na" for number in range(20_000))
    done = ingest(write(tmp_path / "r.csv", *rows), file)
    assert "20,000 companies, 0 lines skipped" in done.stdout
    assert count(file) == 20_000


def test_other_writers_are_not_blocked_between_batches(file: Path, tmp_path: Path) -> None:
    """The server writes to the same database and waits for each transaction to end."""
    csv = write(tmp_path / "r.csv", *(f"2019{n:05}K,C,Live,62011,na" for n in range(1200)))
    tables.read(lambda connection: None)
    kept: list[int] = []

    def in_between(_: int) -> None:
        databases.execute(file, "DELETE FROM companies WHERE uen = 'nobody'")
        kept.append(count(file))

    registered.ingest(csv, report=lambda _: None, progress=in_between)
    assert kept == [500, 1000, 1200]


async def found_in(
    tenant: str, *industries: str, limit: int = 10, without: Any = (), **more: list[str]
) -> list[Candidate]:
    """Return the best companies of the register."""
    site: Any = {"website": "https://acme.com", "domain": "acme.com", "name": "A", "about": ""}
    asked: Any = {**icp(**more), "industries": list(industries)}
    company: Any = {"site": site, "customers": []}
    given = await register.rank(tenant, company, asked, limit=limit, without=without)
    return [each.candidate for each in given.found]


async def test_only_live_companies_of_the_industry_are_found(file: Path) -> None:
    assert ingest(MADE_UP, file).exit_code == 0
    found = await found_in("t1", "Food and drink service", limit=100)
    assert found
    assert all(ssic.covers("56", candidate.ssic) for candidate in found)
    dead = count(file, "NOT is_live AND primary_ssic BETWEEN '56000' AND '56999'")
    live = count(
        file, "is_live AND '56' IN (substr(primary_ssic, 1, 2), substr(secondary_ssic, 1, 2))"
    )
    assert len(found) == live
    assert dead > 0
    assert {candidate.source for candidate in found} == {"register"}
    assert all(candidate.key == f"uen:{candidate.uen}" for candidate in found)
    assert await found_in("t1", "xyzzy") == []
    assert await found_in("t1", "Food and drink service", limit=0) == []


async def test_main_activity_ranks_first_and_industries_alternate(
    file: Path, tmp_path: Path
) -> None:
    rows = (
        *("201900001A,A,Live,62011,na", "201900002B,B,Live,62011,na", "201900003C,C,Live,62011,na"),
        *("201900004D,D,Live,56111,na", "201900005E,A BESIDE,Live,46900,62021"),
        "201900006F,F,Live,47711,na",
    )
    assert ingest(write(tmp_path / "r.csv", *rows), file).exit_code == 0
    names = [each.name for each in await found_in("t1", "62", "I")]
    assert names == ["A", "D", "B", "C", "A BESIDE"]


async def test_keyword_matches_rank_first_and_known_ones_are_left_out(
    file: Path, tmp_path: Path
) -> None:
    rows = ("201900001A,ALPHA,Live,62011,na", "201900002B,ROBOT 100%,Live,62011,na")
    assert ingest(write(tmp_path / "r.csv", *rows), file).exit_code == 0
    found = await found_in("t1", "62", keywords=["robot", " "])
    assert [each.name for each in found] == ["ROBOT 100%", "ALPHA"]
    found = await found_in("t1", "62", keywords=["%"], limit=1)
    assert [each.name for each in found] == ["ROBOT 100%"]
    known = {"uen:201900001A", "domain:x.com"}
    assert uens(await found_in("t1", "62", without=known)) == ["201900002B"]


async def test_register_matches_only_regions_around_singapore(file: Path) -> None:
    assert ingest(MADE_UP, file).exit_code == 0
    assert await found_in("t1", "62", regions=["Germany"]) == []
    assert await found_in("t1", "62", regions=["Germany", "asia"])


async def test_register_of_a_tenant_is_private(file: Path, tmp_path: Path) -> None:
    shared = write(tmp_path / "s.csv", "201900001A,SHARED,Live,62011,na")
    own = write(tmp_path / "o.csv", "201900002B,OWN,Live,62011,na", "201900001A,S2,Live,62011,na")
    assert ingest(shared, file).exit_code == 0
    assert ingest(own, file, "--tenant", "t1").exit_code == 0
    assert count(file) == 3
    assert len(await found_in("t1", "62")) == 2
    assert uens(await found_in("t2", "62")) == ["201900001A"]
