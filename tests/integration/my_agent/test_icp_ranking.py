"""The measured quality of the ICP finder's ranking, on a smaller register than the bench's."""

from bench.icp import ranking


def test_planted_companies_are_ranked_first() -> None:
    (line,) = ranking.lines(4000)
    assert line.holds
