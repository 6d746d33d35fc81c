"""Answers: whether the finder says that it has not understood a part of a message. Pure functions."""

import re

from bench.turns.values import folded

# In the languages of the turns.
_MISUNDERSTOOD = re.compile(
    r"did(?: not|n't) (?:quite )?understand|found no website in that|cannot answer that"
    r"|nicht verstanden|keine (?:Website|Internetseite) (?:darin )?gefunden|beantworten kann ich"
    r"|n[ãa]o (?:entendi|percebi|compreendi)|n[ãa]o encontrei nenhum site",
    re.IGNORECASE,
)
# The parts that it names: the first, and one after another.
_PART = re.compile(r"(?:[\s,:]|\b(?:and|und|e)\b)*[“„]([^”“]*)[”“]")


def is_misunderstood(said: str, quote: str) -> bool:
    """Return whether an answer says that some words were not understood.

    Args:
        said: the answer. If it names the parts that were not understood, the others were.
        quote: the words.
    """
    for found in _MISUNDERSTOOD.finditer(said):
        at, parts = found.end(), []
        while part := _PART.match(said, at):
            at = part.end()
            parts.append(folded(part[1]))
        words = folded(quote)
        if not parts or any(each in words or words in each for each in parts):
            return True
    return False
