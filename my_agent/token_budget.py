"""Token budget: fit the messages of one model call into the model's context window.

Counts are estimates without a tokenizer: they are rather too high than too low.
"""

import math
from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

# Context windows in tokens, by the beginning of the model's name. The first match counts.
_WINDOWS = (
    ("gpt-4o", 128_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    ("gpt-5", 400_000),
    ("o1", 128_000),
    ("o3", 200_000),
    ("o4", 200_000),
)
UNKNOWN = 16_384
"""Context window, in tokens, that is assumed for a model without an entry."""
MOST = 32_000
"""Tokens that one call reads at most, also of a model with a larger window: they cost money."""
ANSWER = 4_096
"""Tokens that are kept free for the answer; at most a quarter of the window."""
# Tokens that a message takes besides its text.
_PER_MESSAGE = 6
_CUT = "\n[... cut ...]\n"


def window_of(model: str, configured: int | None = None) -> int:
    """Return the context window of a model in tokens.

    Args:
        model: name of the model.
        configured: the window that the settings give; it overrides the table.
    """
    if configured is not None:
        return configured
    name = model.rpartition("/")[2].lower()
    return next((size for start, size in _WINDOWS if name.startswith(start)), UNKNOWN)


def budget(model: str, configured: int | None = None) -> int:
    """Return the tokens that the messages of one call may have."""
    window = window_of(model, configured)
    return min(MOST, window - min(ANSWER, window // 4))


def estimate(text: str) -> int:
    """Estimate the tokens of a text: one for three bytes of UTF-8."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 3)


def size(message: AnyMessage) -> int:
    """Estimate the tokens of a message."""
    return estimate(str(message.text)) + _PER_MESSAGE


def fit(messages: Sequence[AnyMessage], tokens: int) -> list[AnyMessage]:
    """Return the messages that fit into a budget.

    System messages and the last message stay. Of the others the latest stay, without a gap, from a
    question on. If the rest alone is too large, the last message is cut in its middle.

    Args:
        messages: the messages of one call, oldest first.
        tokens: the budget.
    """
    if not messages:
        return []
    *others, last = messages
    fixed = [each for each in others if isinstance(each, SystemMessage)]
    free = tokens - sum(map(size, fixed))
    last = _cut(last, max(free, 64))
    free -= size(last)
    kept: list[AnyMessage] = []
    for each in reversed([each for each in others if not isinstance(each, SystemMessage)]):
        free -= size(each)
        if free < 0:
            break
        kept.append(each)
    # An answer without its question only confuses.
    while kept and len(kept) < len(others) - len(fixed) and not isinstance(kept[-1], HumanMessage):
        kept.pop()
    return [*fixed, *reversed(kept), last]


def shorten(text: str, tokens: int) -> str:
    """Cut the middle out of a text that has more than `tokens` tokens."""
    if estimate(text) <= tokens:
        return text
    # Three bytes are at most three characters; longer encodings are cut further.
    half = max(1, (tokens * 3 - len(_CUT)) // 2)
    while half > 1:
        cut = text[:half] + _CUT + text[-half:]
        if estimate(cut) <= tokens:
            return cut
        half = half * 3 // 4
    return text[:1]


def _cut(message: AnyMessage, tokens: int) -> AnyMessage:
    if size(message) <= tokens:
        return message
    text = shorten(str(message.text), tokens - _PER_MESSAGE)
    return message.model_copy(update={"content": text})
