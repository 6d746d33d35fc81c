"""Fragments: messages that only make sense with the question before them.

"on the K55?" asks the last question about something else, "no, I meant Paris" corrects it, and "are
you sure?" asks it again.
"""

import re
from dataclasses import dataclass

from my_agent.chat.documents.words import FUNCTION_WORDS, fold, listed

_CORRECTION = re.compile(
    r"(?:(?:no|nope|sorry|wait|actually|nao|desculpa|desculpe|espera)\s*[,.;:!-]+\s*)*"
    r"(?:(?:i|what i)\s(?:mean|meant)(?:\sis|\swas)?|not that one|quero dizer|queria dizer|quis dizer"
    r"|eu queria dizer|digo)?\b[\s,.;:!-]*"
)
_AGAIN = re.compile(
    r"(?:(?:are|r) (?:you|u) sure|really|is that (?:true|right|all)|yes|yeah|sure|go on|continue"
    r"|(?:tell me|say|explain) more|more(?: details?)?|repeat(?: that)?|again|what\b|pardon|in other words"
    r"|(?:(?:can|could) you |please )?(?:answer|reply|say (?:that|it)) in (?:english|portuguese|german|french|spanish)"
    r"|(?:podes?|poderia|pode voce) (?:responder|dizer isso) em (?:ingles|portugues|espanhol|frances)"
    r"|(?:say it )?(?:shorter|simpler)|summari[sz]e(?: that| it)?|in (?:english|portuguese|german|french|spanish)"
    r"|tens a certeza|tem a? ?certeza|a serio|sim|mais|continua|continue|repete|outra vez|como assim"
    r"|conta mais|(?:diz|diga|explica|explique) (?:mais|melhor)|mais detalhes"
    r"|em (?:ingles|portugues|espanhol|frances))"
    r"(?: please| por favor)?[\s?!.]*"
)
_BEGIN = listed(
    """
    the a an of in on at for from with to by without
    o a os as ao aos do da dos das no na nos nas de em para com sem por pelo pela num numa
    """
)
_ARTICLES = listed("the a an o a os as")
_ELSEWHERE = listed("elsewhere noutros noutro noutra outros outras otherwise")
# Words after `the` or `of the` in a fragment. More are a search of their own.
_MOST = 3


@dataclass(frozen=True)
class Fragment:
    """What a message puts in the place of a part of the last question.

    Attributes:
        words: the new part, without article and preposition.
        named: whether it has a name or a code. The capital letter of a message's first word says
            nothing.
        article: whether it begins with an article.
    """

    words: str
    named: bool
    article: bool


def without_correction(question: str) -> str:
    """Return a message without words such as "no, I meant". It may be nothing but these."""
    found = _CORRECTION.match(fold(question))
    # Folding may change the length: then nothing is cut.
    if found is None or not found.end() or len(fold(question)) != len(question):
        return question
    rest = question[found.end() :]
    return rest if rest.strip(" ?!.") else question


def asks_again(question: str) -> bool:
    """Return whether a message only asks for more, or for the same answer in another form."""
    return _AGAIN.fullmatch(fold(question).strip()) is not None


def fragment(question: str, *, corrects: bool = False) -> Fragment | None:
    """Return the part that a message such as "on the K55?" names; None for other messages.

    Args:
        question: the message.
        corrects: whether words such as "I meant" came before it.
    """
    text = question.strip().rstrip("?!. ").strip()
    words = text.split()
    begins = 0
    while begins < len(words) and fold(words[begins]) in _BEGIN:
        begins += 1
    rest = words[begins:]
    if not 0 < len(rest) <= _MOST or any(
        fold(word) in FUNCTION_WORDS - _BEGIN and fold(word) not in _ELSEWHERE for word in words
    ):
        return None
    named = any(
        any(map(str.isdigit, word)) or (word[0].isupper() and (place or begins or corrects))
        for place, word in enumerate(rest)
    )
    alone = (corrects and named) or (
        len(rest) == 1
        and (fold(rest[0]) in _ELSEWHERE or rest[0][0].isupper() or any(map(str.isdigit, rest[0])))
    )
    if not (begins or alone):
        return None
    return Fragment(" ".join(rest), named, bool(begins) and fold(words[0]) in _ARTICLES)
