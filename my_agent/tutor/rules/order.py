"""Word order: questions, questions inside of sentences, adjectives and adverbs."""

import re
from collections.abc import Iterator

from my_agent.tutor.corrections import Issue
from my_agent.tutor.rules import lexicon
from my_agent.tutor.rules.clauses import MODALS, MODALS_NOT
from my_agent.tutor.rules.patterns import Pattern, found, pattern
from my_agent.tutor.rules.sentences import Sentence
from my_agent.tutor.rules.wordlists import words

_ASKS = "A question begins with its auxiliary verb."
_TELLS = "A question inside of a sentence keeps the order of a statement."
_SUBJECT = r"(?:I|you|he|she|it|we|they)"
_WH = r"(?:what|where|when|why|how|how much|how many|what time|how often|how long|which \w+)"
_AUXILIARY = (
    r"(?:am|is|are|was|were|can|could|will|would|should|must|have|has|"
    r"don't|doesn't|didn't|can't|couldn't|won't|isn't|aren't|wasn't|weren't|haven't|hasn't)"
)
_FREQUENCY = r"(?:always|usually)"
_ADJECTIVES = (
    r"(?:red|blue|green|white|black|yellow|big|small|large|simple|beautiful|expensive|cheap|"
    r"important|interesting|difficult|easy|new|nice|good|old|young|comfortable|modern|different|"
    r"special|famous|delicious|intelligent|tall|strong|rich|poor|happy)"
)
_NOT_NOUNS = words(
    "bit little lot year metre meter day week month hour minute as so too very quite more is was "
    "something anything somebody times"
)


# What shows that the words after "where is" are more than a noun.
_NO_NOUN = words(
    "is are was were am be been do does did have has had will can now today tomorrow yesterday here "
    "there from and but or so because when if that who going"
)


def _invert(match: re.Match[str]) -> str | None:
    return f"{match['verb']} {_inner(match['subject'])}"


def _inner(subject: str) -> str:
    return subject if subject == "I" else subject[0].lower() + subject[1:]


def _with_do(match: re.Match[str]) -> str | None:
    verb, subject = match["verb"].lower(), match["subject"]
    if verb in MODALS | MODALS_NOT:
        return None
    if verb in lexicon.SAME:
        return None
    if lexicon.is_base(verb) and subject.lower() in {"i", "you", "we", "they"}:
        return f"do {_inner(subject)} {verb}"
    if (lemma := lexicon.of_third(verb)) and lemma not in {"be", "have"}:
        return f"does {_inner(subject)} {lemma}"
    if (lemma := lexicon.of_past(verb)) and lemma not in {"be", "have"}:
        return f"did {_inner(subject)} {lemma}"
    return None


def _means(match: re.Match[str]) -> str:
    return f"does {match['noun']} mean"


def _moved(match: re.Match[str]) -> str | None:
    _, *inner = match["noun"].lower().split()
    if any(word in _NO_NOUN or lexicon.of_gerund(word) for word in inner):
        return None
    return f"{match['noun']} {match['verb']}"


def _it_does(match: re.Match[str]) -> str | None:
    verb, aux = match["verb"].lower(), match["aux"].lower()
    if not lexicon.is_base(verb):
        return None
    form = {"does": lexicon.third(verb), "did": lexicon.past(verb), "do": verb}[aux]
    return f"{match['subject']} {form}"


def _adjective(match: re.Match[str]) -> str | None:
    noun = match["noun"].lower()
    if noun in _NOT_NOUNS or not lexicon.is_singular(noun) or noun.endswith("ing"):
        return None
    article = match["article"]
    if article.lower() in {"a", "an"}:
        article = lexicon.article(match["adjective"].lower())
    return f"{article} {match['adjective']} {match['noun']}"


def _noun_before(match: re.Match[str]) -> str | None:
    return f"{match['adjective']} {match['noun']}" if _adjective(match) else None


def _swap(match: re.Match[str]) -> str | None:
    verb = match["verb"].lower()
    if not lexicon.is_base(verb) and not lexicon.of_third(verb):
        return None
    return f"{match['adverb']} {match['verb']}"


def _object_first(match: re.Match[str]) -> str:
    return f"{match['object']} {match['adverb']}"


def _at_end(match: re.Match[str]) -> str | None:
    verb = match["verb"].lower()
    if not lexicon.is_base(verb) and not lexicon.of_third(verb):
        return None
    return f"{match['verb']}{match['rest']} {match['time']}"


_START = r"(?:^|[,;] |\b(?:but|and|so) )\W*"
_PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "word_order",
        rf"{_START}{_WH} [[(?P<subject>{_SUBJECT}) (?P<verb>{_AUXILIARY})]]\b"
        r"(?=[^,;]*\?)(?![^,;?]*\b(?:is|was|are)\b[^,;?]*\?)",
        _invert,
        _ASKS,
    ),
    pattern(
        "word_order",
        rf"{_START}{_WH} [[(?P<subject>{_SUBJECT}) (?P<verb>(?!{_AUXILIARY}\b)\w+)]]\b"
        r"(?=[^,;]*\?)(?![^,;?]*\b(?:is|was|are|do|does|did)\b[^,;?]*\?)",
        _with_do,
        _ASKS,
    ),
    pattern(
        "word_order",
        r"^\W*what [[means (?P<noun>(?:this|that|the|your)? ?[\w\"“”']+)]]\s*\?",
        _means,
        _ASKS,
    ),
    pattern(
        "word_order",
        r"\b(?:knows?|knew|tell me|ask|wonder|remembers?|understand|explain) (?:me )?"
        r"(?:where|why|how|when|what time|how old|how much|how far) "
        r"[[(?P<verb>is|are|was|were) (?P<noun>(?:the|my|your|his|her|our|their|this|that) "
        r"[^,;?.!\n]{1,50}(?=\s*[,;?.!]|\s*$)|(?:it|he|she|you|they|we)\b)]]",
        _moved,
        _TELLS,
    ),
    pattern(
        "word_order",
        r"\b(?:know|tell me|ask|wonder|remember|understand|explain) (?:me )?"
        r"(?:where|why|how|when|what|what time|how much|how many \w+) "
        rf"[[(?P<aux>does|do|did) (?P<subject>{_SUBJECT}) (?P<verb>\w+)]]",
        _it_does,
        _TELLS,
    ),
    pattern(
        "word_order",
        r"^\W*[[you (?P<verb>can|could|will|would)]] (?=[^.]*\bplease\?)",
        lambda match: f"{match['verb']} you",
        _ASKS,
    ),
    pattern("word_order", r"^\W*[[you have]] (?=[^.]*\bplease\?)", "do you have", _ASKS),
    pattern(
        "word_order",
        r"^[[never (?P<subject>I|we|they) have]]\b",
        lambda match: f"{match['subject']} have never",
        "“Never” stands after “have”.",
    ),
    pattern(
        "word_order",
        r"\b(?:has|have|had|bought|buy|is|want|wants|need|needs|saw|in) "
        rf"[[(?P<article>an?) (?P<noun>\w+) (?P<adjective>{_ADJECTIVES})]]"
        r"(?=\s*[.,!?]|\s*$| (?:with|for|in|near|and)\b)",
        _adjective,
        "The adjective stands before its noun.",
    ),
    pattern(
        "word_order",
        rf"\b(?:I|you|we|they|he|she) [[(?P<verb>\w+) (?P<adverb>{_FREQUENCY})]] "
        r"(?=to|at|in|before|after|by|with|a|the|my)",
        _swap,
        "“Always” and “usually” stand before the verb.",
    ),
    pattern(
        "word_order",
        r"\b(?:speak|speaks|spoke|speaking) [[(?P<adverb>very (?:well|good)|perfectly|fluently) "
        r"(?P<object>english|portuguese|spanish|french|german|italian|\w+ese)]]",
        _object_first,
        "The object stands next to its verb.",
    ),
    pattern(
        "word_order",
        r"\b(?:I|we|they|he|she|you) (?:really )?(?:like|likes|love|loves|liked|enjoy) "
        r"[[(?P<adverb>very much) (?P<object>(?:the |my |this |your )?\w+(?: \w+)?)]](?=\s*[.!?,]|$)",
        _object_first,
        "The object stands next to its verb.",
    ),
    pattern(
        "word_order",
        r"\b(?:is|are|was|were|not|isn't|aren't) [[enough (?P<a>big|good|old|large|strong|tall|"
        r"warm|hot|cold|fast|rich|cheap|young|long|easy|small)]]\b(?! \w+s\b)",
        lambda match: f"{match['a']} enough",
        "“Enough” stands after the adjective.",
    ),
    pattern(
        "word_order",
        r"^(?:I|we|they|he|she) [[(?P<time>every (?:day|week|year|morning|night|weekend)) "
        r"(?P<verb>\w+)(?P<rest>[^.,!?;]*)]]",
        _at_end,
        "The time stands at the end of the sentence.",
    ),
)


def check(sentence: Sentence) -> Iterator[Issue]:
    """Yield words that stand in the wrong place."""
    yield from found(sentence, _PATTERNS)
