"""The routes of a thread's candidates: evidence, feedback and export, for the caller's tenant only."""

import csv
import io
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from my_agent.companies import register
from tests.support.icp import Person, Sites, icp_server, url
from tests.support.policy import Member, member
from tests.support.processes import ROOT, Running
from tests.support.products import using

pytestmark = pytest.mark.usefixtures("each_database")

REGISTER = ROOT / "my_agent" / "companies" / "reference" / "made_up_register.csv"


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with Sites() as started:
        yield started


@pytest.fixture(scope="module")
def folder(each_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("candidates")
    with using(url(folder)):
        register.ingest(REGISTER, report=lambda _: None)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with icp_server(folder) as started:
        yield started


@pytest.fixture
async def ann(server: Running, sites: Sites, folder: Path) -> AsyncIterator[Person]:
    person = Person(sites, folder)
    async with person.at(server):
        yield person


@pytest.fixture
async def web(server: Running, ann: Person) -> AsyncIterator[Member]:
    async with member(server, ann.name, ann.tenant) as client:
        yield client


def base(person: Person) -> str:
    return f"/icp_finder/threads/{person.thread}"


async def test_candidates_have_evidence_and_obey_feedback(ann: Person, web: Member) -> None:
    await ann.open()
    empty = await web.get(f"{base(ann)}/candidates")
    assert (empty["rule_name"], empty["candidates"]) == (None, [])
    await ann.settle()
    found = await web.get(f"{base(ann)}/candidates")
    first, second = found["candidates"][:2]
    assert {each["source"] for each in first["evidence"]} == {"register"}
    assert sum(first["parts"].values()) == pytest.approx(first["score"], abs=0.01)
    rejected = await web.post(
        f"{base(ann)}/feedback", {"key": first["key"], "verdict": "rejected", "reason": "too small"}
    )
    assert first["key"] not in [each["key"] for each in rejected["candidates"]]
    assert [(each["key"], each["reason"]) for each in rejected["rejected"]] == [
        (first["key"], "too small")
    ]
    # The conversation knows the same feedback.
    assert first["name"] in await ann.say("which ones did I reject?")
    kept = await web.post(f"{base(ann)}/feedback", {"key": second["key"], "verdict": "kept"})
    assert (kept["candidates"][0]["key"], kept["candidates"][0]["verdict"]) == (
        *(second["key"],),
        "kept",
    )
    for each in (first, second):
        undone = await web.post(f"{base(ann)}/feedback", {"key": each["key"], "verdict": None})
    assert [each["key"] for each in undone["candidates"]] == [
        each["key"] for each in found["candidates"]
    ]
    unknown = await web.http.post(f"{base(ann)}/feedback", json={"key": "x", "verdict": "kept"})
    assert unknown.status_code == 404


async def test_the_export_of_a_thread_has_its_own_search(ann: Person, web: Member) -> None:
    await ann.open()
    assert len((await web.http.get(f"{base(ann)}/scores.csv")).text.splitlines()) == 1
    await ann.settle()
    answer = await web.http.get(f"{base(ann)}/scores.csv")
    rows: list[Any] = list(csv.DictReader(io.StringIO(answer.text)))
    shown = (await web.get(f"{base(ann)}/candidates"))["candidates"]
    assert [row["name"] for row in rows[:3]] == [each["name"] for each in shown[:3]]
    assert {row["company"] for row in rows} == {f"{ann.tenant}.example"}


async def test_others_see_and_change_nothing(server: Running, ann: Person, web: Member) -> None:
    await ann.open()
    await ann.settle()
    before = await web.get(f"{base(ann)}/candidates")
    key = before["candidates"][0]["key"]
    async with (
        member(server, "ann", f"{ann.tenant}-2") as stranger,
        member(server, "bob", ann.tenant) as colleague,
    ):
        for other in (stranger, colleague):
            for path in ("candidates", "scores.csv"):
                assert (await other.http.get(f"{base(ann)}/{path}")).status_code == 404
            said = {"key": key, "verdict": "rejected"}
            assert (await other.http.post(f"{base(ann)}/feedback", json=said)).status_code == 404
    assert await web.get(f"{base(ann)}/candidates") == before


async def test_a_locked_thread_shows_candidates_and_refuses_feedback(
    ann: Person, web: Member
) -> None:
    await ann.open(website=ann.website)
    await ann.settle()
    old = base(ann)
    await ann.open(website=ann.website)
    shown = await web.get(f"{old}/candidates")
    said = {"key": shown["candidates"][0]["key"], "verdict": "rejected"}
    refused = await web.http.post(f"{old}/feedback", json=said)
    assert (refused.status_code, refused.json()["error"]) == (409, "thread_locked")
    assert await web.get(f"{old}/candidates") == shown
