"""The checker of claims: what it lets pass and what it refuses."""

from my_agent.research.claims import check
from tests.support.research_contrast import CASES


def test_contrast_set_has_160_different_cases() -> None:
    claims = {(case[0], claim) for case in CASES for claim in case[1:]}
    assert len(claims) == 160


def test_at_most_one_in_twenty_false_claims_passes() -> None:
    passed = [claim for quote, _, *false in CASES for claim in false if check(claim, quote) is None]
    assert len(passed) <= 0.05 * 120, passed


def test_most_true_claims_pass() -> None:
    refused = [(claim, why) for quote, claim, *_ in CASES if (why := check(claim, quote))]
    assert len(refused) <= 0.1 * 40, refused
