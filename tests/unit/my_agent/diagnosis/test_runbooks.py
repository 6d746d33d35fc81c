"""Runbooks: which one is quoted for an incident, what of it, and that mostly none is."""

from time import process_time

import pytest

from bench.runbooks.quality import cases, library
from my_agent.diagnosis.resemblance import match, read, weights
from my_agent.diagnosis.runbooks import best


def test_incidents_of_the_bench_get_their_runbook_and_no_other() -> None:
    found = list(cases(library()))
    wanted = [each for each in found if each.runbook]
    assert len(wanted) > 30 and len(found) - len(wanted) > 30
    assert [each for each in found if each.is_false] == []
    assert sum(each.is_found for each in wanted) >= 0.9 * len(wanted)


def test_only_runbook_of_a_tenant_is_quoted_for_its_own_incidents_only() -> None:
    names = {each.path for each in library()}
    for name in sorted(names):
        for each in cases(library(name)):
            assert each.quoted in ((), (each.runbook,)), each


def test_section_that_says_what_to_do_is_quoted() -> None:
    words = "ledger write failed: No space left on device\nledger-db is full"
    (found,) = best(words, library())
    assert found.document == "runbook-disk-full.md"
    assert found.section == "Disk of a database is full > Mitigate"
    assert found.quote.startswith("1. Drop the unused slot")
    assert found.because == "No space left on device"
    assert found.place.document_id == "runbook-disk-full.md"
    assert found.place.end - found.place.start == len(found.quote)


def test_runbook_without_such_a_heading_is_quoted_where_it_resembles() -> None:
    (found,) = best("auth: Token used before issued, logins fail", library())
    assert found.section == "Clocks differ"
    assert "Token used before issued" in found.quote


def test_name_of_a_service_is_not_enough() -> None:
    text = "# Payments\n\nThe service payments takes card payments of the checkout and of the shop."
    (only,) = [read(text)]
    common = match(read("payments checkout shop card failed"), only, weights([only]))
    assert not common.is_clear


def test_three_runbooks_are_quoted_at_most_and_each_once() -> None:
    words = (
        "No space left on device. could not extend file.\n"
        "FATAL: sorry, too many clients already.\n"
        "Deadlock found when trying to get lock; try restarting transaction.\n"
        "MISCONF Redis is configured to save RDB snapshots.\n"
        "x509: certificate has expired or is not yet valid."
    )
    found = [each.document for each in best(words, library())]
    assert len(found) == len(set(found)) == 3


@pytest.mark.parametrize("words", ["", " \n", "\0\ud800", "#" * 10_000, "a " * 5_000])
def test_any_words_find_nothing_by_chance(words: str) -> None:
    assert best(words, library()) == []


def test_long_words_take_linear_time() -> None:
    repeated = read("disk full " * 5_000, 400)
    passage = read("disk full " * 90)
    began = process_time()
    for _ in range(20):
        match(repeated, passage, weights([passage]))
    assert process_time() - began < 20
