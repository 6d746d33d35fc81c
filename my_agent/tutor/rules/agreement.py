"""Agreement and past tense: the form of a verb after its subject."""

import re
from collections.abc import Iterator

from my_agent.tutor.corrections import Issue
from my_agent.tutor.rules import lexicon
from my_agent.tutor.rules.clauses import (
    AUXILIARIES,
    DETERMINERS,
    FOLLOWERS,
    MODALS,
    OPENERS,
    WISHES,
    Clause,
    clauses,
)
from my_agent.tutor.rules.sentences import Sentence
from my_agent.tutor.rules.wordlists import words

AGREE = "The verb must agree with its subject."
PAST = "The time is over: use the past."
# "be" and "have" by the number of the subject.
_BE = {"first": "am", "you": "are", "singular": "is", "plural": "are"}
_WAS = {"first": "was", "you": "were", "singular": "was", "plural": "were"}
_NOT = re.compile(r"n't$")

_UNIT = r"(?:night|week|weekend|month|year|summer|winter|spring|autumn|\w+day)"
_MARKER = re.compile(
    rf"(?<!from )(?<!since )(?<!until )(?<!than )(?<!of )"
    rf"\b(?:yesterday|last {_UNIT}|ago|in (?:19\d\d|200\d|201\d|202[0-4])|"
    r"(?:when|before|after) (?:i|we|he|she|they) (?:arrived|got|came|woke|opened|called|went|left|met|"
    r"saw|heard|started|finished)|when i was (?:a|an|\w+ (?=years)|young|little|small)|when we were)\b(?!['\u2019])",
    re.IGNORECASE,
)
# Verbs about the present of the one who tells: "I think we met last year".
_THINKING = words("think believe know guess hope suppose remember mean say wonder love")
_NOW = words("now today nowadays tomorrow still always usually every always")
_SINGULAR_ONLY = words("each every")


def check(sentence: Sentence) -> Iterator[Issue]:
    """Yield verbs that do not agree with their subject, or with a time in the past."""
    past_from = _past(sentence)
    for clause in clauses(sentence):
        is_past = _is_past(sentence, clause, past_from)
        if is_past and (issue := _to_past(sentence, clause)) is not None:
            yield issue
            yield from _coordinated(sentence, clause)
            continue
        if (issue := _agreed(sentence, clause)) is not None:
            yield issue
    yield from _of_one(sentence)


# --- tense


def _past(sentence: Sentence) -> re.Match[str] | None:
    return _MARKER.search(sentence.text)


def _is_past(sentence: Sentence, clause: Clause, marker: re.Match[str] | None) -> bool:
    """Return whether a time in the past is a time of this clause."""
    if marker is None or sentence.is_question:
        return False
    start, end = sentence.start + marker.start(), sentence.start + marker.end()
    subject, verb = sentence.words[clause.subject], sentence.words[clause.verb]
    if verb.low in _THINKING or start <= subject.start < end:
        return False
    if sentence.low(clause.subject - 1) in OPENERS - {"so"}:
        return False
    low, high = (end, subject.start) if subject.start > start else (verb.end, start)
    between = [word for word in sentence.words if low <= word.start < high]
    if any(word.low in _NOW or word.low in {"but", ";"} for word in between):
        return False
    if subject.start < start:
        # "I have a friend who moved last year": the time belongs to another clause.
        others = OPENERS | {"and", ",", "which"}
        if any(lexicon.of_past(w.low) or w.low in others for w in between):
            return "when" in marker.group().lower() and not any(
                lexicon.of_past(word.low) for word in between
            )
        return sentence.low(clause.verb + 1) != "to" or verb.low not in {"have", "need", "want"}
    after = [word.low for word in sentence.words if word.start > verb.end]
    return not any(word in _NOW for word in after[:3])


def _to_past(sentence: Sentence, clause: Clause) -> Issue | None:
    verb = sentence.low(clause.verb)
    if verb in {"am", "is", "are"}:
        if lexicon.of_gerund(sentence.low(clause.verb + 1)) and sentence.low(0) != "when":
            return None
        form = _WAS[clause.number]
    else:
        lemma = verb if lexicon.is_base(verb) else lexicon.of_third(verb)
        if lemma is None or lemma in lexicon.SAME or verb in {"put"}:
            return None
        if lexicon.of_participle(sentence.low(clause.verb + 1)) and lemma == "have":
            return None
        if not clause.is_pronoun and not _is_verb(sentence, clause, lemma):
            return None
        form = lexicon.past(lemma)
    if form == verb:
        return None
    return sentence.issue("tense", clause.verb, clause.verb, form, PAST)


def _coordinated(sentence: Sentence, clause: Clause) -> Iterator[Issue]:
    """Yield "miss" of "I wake up late and miss the bus"."""
    for index in range(clause.verb + 1, min(clause.verb + 7, len(sentence.words) - 1)):
        verb, after = sentence.low(index), sentence.low(index + 1)
        if sentence.low(index - 1) == "and" and lexicon.is_base(verb) and after in DETERMINERS:
            if verb not in lexicon.SAME:
                yield sentence.issue("tense", index, index, lexicon.past(verb), PAST)
            return


# --- agreement


def _agreed(sentence: Sentence, clause: Clause) -> Issue | None:
    verb, number = sentence.low(clause.verb), clause.number
    form = _be_have_do(sentence, clause) or _main_verb(sentence, clause)
    if form is None or form == verb or number is None:
        return None
    return sentence.issue("agreement", clause.verb, clause.verb, form, AGREE)


def _be_have_do(sentence: Sentence, clause: Clause) -> str | None:
    """Return the right form of "be", "have" or "do", also with "n't"."""
    verb, number = sentence.low(clause.verb), clause.number
    stem, negated = _NOT.subn("", verb)
    wishes = {"if", "wish", "wishes", "though", "wished", "as", "were"}
    before = {word.low for word in sentence.words[: clause.subject]}
    if stem in {"am", "is", "are"}:
        form = _BE[number]
    elif stem in {"was", "were"}:
        if before & wishes:
            return None
        form = _WAS[number]
    elif stem in {"have", "has"}:
        form = "has" if number == "singular" else "have"
    elif stem == "do" and negated:
        form = "does" if number == "singular" else "do"
    elif stem == "does" and negated and number != "singular":
        form = "do"
    else:
        return None
    if before & WISHES and stem == "have":
        return None
    if number == "you" and stem in {"is", "was", "has"} and clause.subject > 0:
        return None
    if number == "plural" and not clause.is_pronoun and _is_group(sentence, clause):
        return None
    if negated and form == "am":
        return None
    return form + "n't" if negated else form


def _is_group(sentence: Sentence, clause: Clause) -> bool:
    """Return whether a plural subject may be one thing: "ten euros", "the United States"."""
    return any(word.low in {"united", "half", "number"} for word in sentence.words[: clause.verb])


def _main_verb(sentence: Sentence, clause: Clause) -> str | None:
    verb, number = sentence.low(clause.verb), clause.number
    after = sentence.low(clause.verb + 1)
    if number == "singular":
        if not lexicon.is_base(verb) or verb in lexicon.SAME or verb in {"have", "be"}:
            return None
        before = {word.low for word in sentence.words[: clause.subject]}
        if before & WISHES or sentence.low(clause.verb - 1) in AUXILIARIES or "let" in before:
            return None
        if sentence.low(clause.subject) == "it" and sentence.low(clause.subject - 1) in {
            "make",
            "makes",
            "made",
            "let",
            "see",
            "have",
        }:
            return None
        if not clause.is_pronoun and not _is_verb(sentence, clause, verb):
            return None
        return lexicon.third(verb)
    lemma = lexicon.of_third(verb)
    if lemma is None or lemma in {"be", "have"}:
        return None
    if number == "you" and clause.subject > 0:
        return None
    if not clause.is_pronoun:
        if lemma in lexicon.MIXED and after not in FOLLOWERS:
            return None
        if any(w.low in {"united", "of"} for w in sentence.words[: clause.verb]):
            return None
    return lemma


def _is_verb(sentence: Sentence, clause: Clause, lemma: str) -> bool:
    """Return whether the word after a noun is its verb, and not one more noun."""
    after = sentence.low(clause.verb + 1)
    if lemma in lexicon.PURE:
        return after not in {"is", "was", "are", "has", "-", "'"} | MODALS
    return after in FOLLOWERS and after not in {"of", "that", "this"}


# --- subjects with "one of", "there", questions


_NO_PREPOSITION = "".join(
    f"(?<!{word} )" for word in ["of", "for", "from", "in", "to", "by", "with", "on", "at"]
)
_RULES: tuple[tuple[re.Pattern[str], int, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), group, replacement)
    for pattern, group, replacement in (
        (r"\bone of (?:my|his|her|our|your|their|the|these|those) \w+s (are)\b", 1, "is"),
        (r"\bone of (?:my|his|her|our|your|their|the|these|those) \w+s (have)\b", 1, "has"),
        (rf"{_NO_PREPOSITION}\b(?:each|every) (?!of\b)\w+ (have)\b", 1, "has"),
        (rf"{_NO_PREPOSITION}\b(?:each|every) (?!of\b)\w+ (are)\b", 1, "is"),
        (r"^yesterday (is)\b", 1, "was"),
        (r"\bthe police (is)\b", 1, "are"),
        (r"\bthe police (was)\b", 1, "were"),
        (r"\bthe police (has)\b", 1, "have"),
        (r"\bwhy (does) (?:they|we|you|i)\b", 1, "do"),
        (r"^(do) (?:he|she) ", 1, "does"),
        (r"^(does) (?:you|we|they|i) ", 1, "do"),
    )
)
_THERE = re.compile(
    r"\bthere (is|was|'s|isn't|wasn't) "
    r"((?:many|several|few|two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|forty|fifty|"
    r"a hundred|some|a lot of|lots of|so many|too many|\d+)) (\w+)(?: (\w+))?",
    re.IGNORECASE,
)
_DO = re.compile(
    r"(?:^|\b(?:when|where|why|how|what|what time|how often|how much) )(do|don't) "
    r"((?:my|your|his|her|our|their|the|this|that) )?(\w+) (\w+)",
    re.IGNORECASE,
)
_DOES = re.compile(
    r"(?:^|\b(?:when|where|why|how|what|what time) )(does) "
    r"((?:my|your|his|her|our|their|the|these|those) \w+s|they|we|you) \w+",
    re.IGNORECASE,
)


def _of_one(sentence: Sentence) -> Iterator[Issue]:
    text = sentence.text
    for pattern, group, replacement in _RULES:
        for found in pattern.finditer(text):
            yield _found(sentence, found, group, replacement)
    for found in _THERE.finditer(text):
        quantity, noun, second = found[2].lower(), found[3].lower(), (found[4] or "").lower()
        several = quantity not in {"some", "a lot of", "lots of"}
        plural = lexicon.is_plural(noun) or (
            lexicon.is_plural(second) and lexicon.is_adjective(noun)
        )
        if (plural or (several and quantity != "few")) and noun not in {"more"}:
            forms = {"is": "are", "was": "were", "'s": " are", "isn't": "aren't"}
            new = forms.get(found[1].lower(), "weren't")
            yield _found(sentence, found, 1, new)
    if not sentence.is_question:
        return
    for found in _DO.finditer(text):
        has_determiner, noun, verb = bool(found[2]), found[3].lower(), found[4].lower()
        singular = noun in {"he", "she", "it"} or (has_determiner and lexicon.is_singular(noun))
        if singular and lexicon.is_base(verb):
            negated = found[1].lower().endswith("n't")
            yield _found(sentence, found, 1, "doesn't" if negated else "does")
    for found in _DOES.finditer(text):
        noun = found[2].split()[-1].lower()
        if noun in {"they", "we", "you"} or lexicon.is_plural(noun):
            yield _found(sentence, found, 1, "do")


def _found(sentence: Sentence, found: re.Match[str], group: int, replacement: str) -> Issue:
    from my_agent.tutor.rules.sentences import make

    start, end = (sentence.start + place for place in found.span(group))
    return make(sentence.message, "agreement", start, end, replacement, AGREE)
