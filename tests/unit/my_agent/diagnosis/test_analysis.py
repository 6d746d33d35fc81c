"""Causes of incidents: found by rules, and never a louder decoy."""

from pathlib import Path

import pytest

from bench.diagnosis import quality
from bench.diagnosis.incidents import FORMATS, generate
from my_agent.diagnosis.analysis import candidates, checks, signs
from my_agent.diagnosis.analysis.candidates import Candidate
from tests.support.diagnosis import LOG
from tests.unit.my_agent.diagnosis.test_reading import read

pytestmark = pytest.mark.usefixtures("no_model")


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("scripted", [False, True], ids=["offline", "insisting model"])
async def test_causes_are_named_and_decoys_are_not(scripted: bool) -> None:
    score = await quality.measure(range(0, 60, 3), scripted=scripted)
    assert score.named >= quality.NAMED * 20
    assert score.blamed == 0
    assert score.honest == score.unknowable > 0


def test_incidents_have_all_formats_and_are_the_same_each_time() -> None:
    incidents = [generate(seed) for seed in range(20)]
    assert set().union(*(each.formats for each in incidents)) == set(FORMATS)
    assert incidents[3].message == generate(3).message
    assert any(each.service is None for each in incidents)


def test_each_result_names_a_place_in_a_source() -> None:
    picture = signs.find(read(LOG)[1])
    best = candidates.rank(picture)[0]
    assert best == Candidate("payments", "disk_full")
    results = {each.test: each for each in checks.check(picture, best)}
    assert {name for name, each in results.items() if each.outcome == "passed"} == {
        "signature", "order", "propagation", "novelty", "origin",
    }  # fmt: skip
    assert all(each.behind for each in results.values() if each.outcome != "unclear")


def test_later_fault_beside_the_incident_is_refuted() -> None:
    burst = "\n".join(
        f"2026-03-02 09:{50 + n}:00,000 ERROR [report] java.lang.OutOfMemoryError: heap space"
        for n in range(9)
    )
    picture = signs.find(read(f"{LOG}{burst}")[1])
    results = {
        e.test: e.outcome for e in checks.check(picture, Candidate("report", "out_of_memory"))
    }
    assert results["order"] == results["propagation"] == "failed"


def test_old_noise_is_no_sign_of_the_incident() -> None:
    noise = "\n".join(
        f"2026-03-02 09:{n:02}:30,000 ERROR [search] deadlock detected" for n in range(50)
    )
    picture = signs.find(read(f"{LOG}{noise}")[1])
    [sign] = [each for each in picture.signs if each.service == "search"]
    assert sign.chronic
    results = {e.test: e.outcome for e in checks.check(picture, Candidate("search", "deadlock"))}
    assert results["signature"] == results["novelty"] == "failed"


def test_signs_of_a_large_reading_are_bounded_and_keep_the_fault() -> None:
    many = "\n".join(
        f"2026-03-02 09:45:00,000 ERROR [svc{n}] call to svc{n + 1} failed" for n in range(2000)
    )
    picture = signs.find(read(f"{LOG}{many}")[1])
    assert len(picture.signs) == signs.MOST
    assert len(picture.services) <= 2 * signs.MOST
    assert Candidate("payments", "disk_full") in candidates.rank(picture)


def test_missing_data_is_named() -> None:
    log = LOG.partition("==> checkout.log <==\n")[2].replace("payments", "ledger")
    picture = signs.find(read(f"==> checkout.log <==\n{log}")[1])
    [candidate] = candidates.rank(picture)
    assert candidate == Candidate("ledger", "unknown")
    wanted = checks.missing(picture, candidate, checks.check(picture, candidate))
    assert wanted[0] == "logs or metrics of ledger from the time of the incident"


def test_model_adds_one_candidate_and_removes_none_of_the_first_two() -> None:
    ranked = [Candidate(name, "crash") for name in "abcd"]
    proposed = [Candidate("x", "crash"), Candidate("y", "crash"), Candidate("a", "crash")]
    assert candidates.choose(ranked, proposed) == [*ranked[:2], proposed[0]]
    assert candidates.choose(ranked, [ranked[1]]) == ranked[:3]
