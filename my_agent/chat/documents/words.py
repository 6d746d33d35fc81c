"""Words: tokenize, fold and stem texts for search and quotation."""

import re
import unicodedata

WORD = re.compile(r"\w+")


def listed(words: str) -> frozenset[str]:
    """Split a text at white space into a set of words."""
    return frozenset(words.split())


FUNCTION_WORDS = listed(
    """
    a about after all also am an and any are as at be been before being between both but by can
    could did do does doing each either for from had has have having he her hers him his how i if
    in into is it its just like many may me might mine more most much must my no nor not of off on
    one only or other our ours out over own per please shall she should since so some such tell
    than that the their theirs them then there these they this those through to too under until up
    upon us very was we were what when where whether which while who whom whose why will with
    within without would you your yours

    a ao aos aquela aquelas aquele aqueles aquilo as ate com como da daquela daquele das de dela
    delas dele deles desde dessa desse desta deste disso disto do dos e ela elas ele eles em entre
    era eram essa essas esse esses esta estao estas este estes eu foi foram ha isso isto ja la lhe
    lhes mais mas me mesma mesmo meu minha muito na nao nas nela nele nem nessa nesse nesta neste
    no nos nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque qual quais
    quando quanta quantas quanto quantos que quem sao se seja sem ser seu seus so sobre sua suas
    tal tambem te tem ter teve tinha toda todas todo todos tu um uma umas uns voce voces
    """
)
"""English and Portuguese words that name nothing (articles, pronouns, ...), without accents."""


def fold(text: str) -> str:
    """Return the text in lower case and without accents."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def words(text: str) -> list[str]:
    """Return the words of a text unchanged and in order."""
    # Normalized to NFC, because a combining accent would end a word.
    return WORD.findall(unicodedata.normalize("NFC", text))


def content_words(text: str) -> list[str]:
    """Return the words of a text that are not function words, each once and in order."""
    return list(dict.fromkeys(each for each in words(text) if fold(each) not in FUNCTION_WORDS))


_ENDINGS = (("oes", "ao"), ("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))


def stem(word: str) -> str:
    """Strip plural and similar endings from a folded word: most forms of a word become equal."""
    for ending, rest in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + rest
            break
    return word[:-1] if len(word) > 4 and word[-1] in "aeo" else word
