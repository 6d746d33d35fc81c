"""Rules: mistakes that learners of English make often, found without a model.

A rule is here if `python -m bench.tutor` shows that what it changes is wrong. Rules that need the
meaning of a sentence are the model's.
"""

from collections.abc import Callable, Iterator

from my_agent.tutor.corrections import Issue, merge
from my_agent.tutor.rules import agreement, forms, nouns, order, tense, usage
from my_agent.tutor.rules.sentences import Sentence, sentences

# If two rules concern the same words, the earlier one counts.
_RULES: tuple[Callable[[Sentence], Iterator[Issue]], ...] = (
    order.check,
    tense.check,
    usage.check,
    forms.check,
    agreement.check,
    nouns.check,
)


def check(text: str) -> list[Issue]:
    """Return the mistakes in an English text that the rules know, in text order."""
    return merge(
        issue for sentence in sentences(text) for rule in _RULES for issue in rule(sentence)
    )
