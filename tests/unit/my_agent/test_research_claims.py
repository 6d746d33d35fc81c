"""The checker of claims: what it lets pass and what it refuses."""

import pytest

from my_agent.research.claims import check
from tests.support.research_contrast import CASES


def test_contrast_set_has_160_different_cases() -> None:
    claims = {(case[0], claim) for case in CASES for claim in case[1:]}
    assert len(claims) == 160


def test_at_most_one_in_twenty_false_claims_passes() -> None:
    passed = [claim for quote, _, *false in CASES for claim in false if check(claim, quote) is None]
    assert len(passed) <= 0.05 * 120, passed


def test_most_true_claims_pass_and_others_end_inside_of_a_clause() -> None:
    refused = [(claim, why) for quote, claim, *_ in CASES if (why := check(claim, quote))]
    assert len(refused) <= 0.2 * 40, refused
    inside = [each for each in refused if "inside of a clause" in each[1]]
    assert len(refused) - len(inside) <= 0.1 * 40, refused


@pytest.mark.parametrize(
    ("quote", "claim", "is_supported"),
    [
        ("Acme costs 9 euros when billed yearly.", "Acme costs 9 euros.", False),
        ("Acme has an office in Rome, but it sells in Spain.", "Acme has an office in Rome.", True),
        ("Unlike Bolt, Acme exports pages.", "Acme exports pages.", True),
        ("Acme bought Bolt in March 2021 for 4 euros.", "Acme bought Bolt for 4 euros.", True),
        ("It is a myth that Acme sells data.", "Acme sells data.", False),
        ("Acme lost half of its customers.", "Acme lost its customers.", False),
    ],
)
def test_claim_leaves_out_whole_clauses_only(quote: str, claim: str, is_supported: bool) -> None:
    assert (check(claim, quote) is None) == is_supported
