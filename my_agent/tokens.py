"""Tokens: cut a text into the pieces that the embedding model knows (a unigram model)."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

# What stands for a space in a piece.
_SPACE = "\u2581"
_WORD = re.compile(f"{_SPACE}?[^{_SPACE}]*")
# Points that a character without a piece costs, below the worst piece.
_UNKNOWN_COSTS = 10.0
# Words whose pieces are kept.
_KEPT = 50_000
# Longer ones are not kept: they are no words.
_LONGEST = 50


class Tokenizer:
    """Cuts texts into the numbers of pieces.

    Args:
        pieces: each piece with its number.
        scores: the logarithm of the probability of each piece, by number.
        unknown: the number for characters without a piece.
        replaced: what the model reads instead of a character.
    """

    def __init__(
        self,
        pieces: Mapping[str, int],
        scores: Sequence[float],
        unknown: int,
        replaced: Mapping[int, str],
    ) -> None:
        self._pieces, self._scores, self._unknown = pieces, scores, unknown
        self._replaced = dict(replaced)
        self._longest = max(map(len, pieces))
        self._worst = min(scores) - _UNKNOWN_COSTS
        # Pieces have a space only at their beginning, so each word has its own.
        self._word = lru_cache(_KEPT)(self._best)

    def __call__(self, text: str) -> list[int]:
        """Return the numbers of the pieces of a text."""
        text = re.sub(" +", " ", text.translate(self._replaced))
        text = (text if text.startswith(" ") else f" {text}").replace(" ", _SPACE)
        found: list[int] = []
        for word in _WORD.findall(text):
            found += self._word(word) if len(word) <= _LONGEST else self._best(word)
        return found

    def _best(self, word: str) -> tuple[int, ...]:
        """Return the pieces of a word whose scores add up to the most."""
        length = len(word)
        best = [0.0, *[-1e30] * length]
        piece, begin = [0] * (length + 1), [0] * (length + 1)
        for start in range(length):
            here = best[start]
            for end in range(start + 1, min(length, start + self._longest) + 1):
                number = self._pieces.get(word[start:end])
                if number is not None and number != self._unknown:
                    score = here + self._scores[number]
                    if score > best[end]:
                        best[end], piece[end], begin[end] = score, number, start
            if here + self._worst > best[start + 1]:
                best[start + 1] = here + self._worst
                piece[start + 1], begin[start + 1] = self._unknown, start
        found = []
        while length:
            found.append(piece[length])
            length = begin[length]
        return tuple(reversed(found))
