"""The measured quality of the ICP finder's ranking, on a smaller register than the bench's."""

import pytest

from bench.icp import ranking


def test_planted_companies_are_ranked_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert ranking.main(["--companies", "4000"]) == 0
    assert "4,000 companies" in capsys.readouterr().out
