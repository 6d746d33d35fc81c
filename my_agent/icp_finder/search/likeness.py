"""Likeness: compare what companies do with what customers do, by the vectors of their texts."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from my_agent import embedding
from my_agent.companies import ssic
from my_agent.icp_finder.model import Company

if TYPE_CHECKING:
    from my_agent.embedding import Vectors

# Characters of a text that are compared: a site says at its beginning what the company does.
LENGTH = 400
# Cosines, measured from the middle of all industries: of unrelated texts, and of the same business.
UNRELATED, SAME = 0.05, 0.75


def measure(texts: Sequence[str], company: Company) -> list[float | None]:
    """Rate how much each text describes the business of a customer, from 0 to 1.

    The ratings are None if no customer's site has been read. Blocks: about 10 ms for each new text,
    and a second for the first call in a process.

    Raises:
        ArithmeticError: the embedding model returned a value that is not finite.
    """
    customers = [site["about"] for site in company["customers"] if site["about"]]
    if not customers:
        return [None] * len(texts)
    import numpy as np

    theirs = np.stack([_direction(_start(text)) for text in customers])
    ratings = ((theirs @ _direction(_start(text))).max() for text in texts)
    return [
        round(min(max((float(each) - UNRELATED) / (SAME - UNRELATED), 0.0), 1.0), 4)
        for each in ratings
    ]


def _start(text: str) -> str:
    # A register is in capital letters, which are tokens of their own.
    return text[:LENGTH].casefold()


@lru_cache(maxsize=8192)
def _direction(text: str) -> "Vectors":
    """Return where a text points to from the middle of all industries, with length 1."""
    import numpy as np

    [found] = embedding.of_passages([text])
    apart = found[0] - _middle()
    direction: Vectors = apart / max(float(np.linalg.norm(apart)), 1e-6)
    return direction


@cache
def _middle() -> "Vectors":
    """Return the mean vector of the divisions' titles."""
    import numpy as np

    titles = [entry.title for entry in ssic.industries() if len(entry.code) == 2]
    middle: Vectors = np.concatenate(list(embedding.of_passages(titles))).mean(axis=0)
    return middle
