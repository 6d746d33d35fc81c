"""Background: how near a passage is to a question, compared with its nearness to other questions.

Some passages are near to everything, for instance short ones. So a cosine alone says little. It says
more as the number of standard deviations above the cosines of the passage with ordinary questions.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from threading import Lock

from my_agent import embedding
from my_agent.embedding import Vectors

_embedding = Lock()


def nearness(question: Vectors, passages: Mapping[int, Vectors]) -> dict[int, float]:
    """Return how near each passage is to a question, in standard deviations above the usual.

    Args:
        question: the vector of the question.
        passages: vectors of passages by id.
    """
    import numpy as np

    if not passages:
        return {}
    vectors = np.stack(list(passages.values()))
    # The first questions of a process share one computation.
    with _embedding:
        ordinary = _questions()
    usual = vectors @ ordinary.T
    found = (vectors @ question - usual.mean(1)) / usual.std(1)
    return dict(zip(passages, map(float, found), strict=True))


@cache
def _questions() -> Vectors:
    """Embed the ordinary questions. Takes about a second, once in a process."""
    import numpy as np

    lines = files(__package__).joinpath("background.txt").read_text(encoding="utf-8").split("\n")
    return np.stack([embedding.of_question(line) for line in lines if line])
