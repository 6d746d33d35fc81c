"""Nouns: articles, numbers, pronouns and missing subjects."""

import re
from collections.abc import Iterator

from my_agent.tutor.corrections import Issue
from my_agent.tutor.rules import lexicon
from my_agent.tutor.rules.patterns import Pattern, found, pattern
from my_agent.tutor.rules.sentences import Sentence
from my_agent.tutor.rules.wordlists import words

_JOBS = (
    r"(?:accountant|actor|actress|architect|artist|baker|chef|cleaner|cook|dentist|designer|"
    r"developer|doctor|driver|electrician|engineer|farmer|firefighter|gardener|hairdresser|"
    r"journalist|judge|lawyer|manager|mechanic|musician|nurse|painter|photographer|pilot|"
    r"plumber|policeman|programmer|psychologist|receptionist|salesman|scientist|secretary|singer|"
    r"soldier|student|teacher|translator|vet|waiter|waitress|writer)"
)
# Countable nouns that learners use without an article.
_THINGS = (
    r"(?:accident|apartment|baby|bag|bath|bicycle|bike|book|boyfriend|brother|camera|car|cat|"
    r"chair|child|cold|computer|daughter|dog|dream|exam|fever|flat|friend|garden|girlfriend|"
    r"headache|holiday|house|idea|interview|job|meeting|party|pen|phone|problem|question|"
    r"shower|sister|son|stomachache|table|test|ticket|toothache|umbrella|wife|husband)"
)
_ADJECTIVES = (
    r"(?:very |really |so )?(?:small|big|new|nice|good|great|bad|beautiful|old|young|large|"
    r"little|difficult|important|interesting|different|terrible|wonderful|long|strange)"
)
_END = r"(?=\s*[.,!?;]|\s*$| (?:and|but|with|for|in|at|on|near|because|from|so|when|who|to|about|yesterday|today|tomorrow)\b)"
_PLACES = (
    r"(?:cinema|beach|supermarket|gym|bank|park|station|airport|dentist|library|theatre|theater|"
    r"restaurant|museum|pool|mall|market|pharmacy|countryside|doctor)"
)
_NAMES = (
    r"(?:Ana|Maria|João|Pedro|Paulo|José|Carlos|Luís|Marta|Rita|Sofia|Miguel|Tiago|Inês|Joana|"
    r"Bruno|Rui|Fernanda|Juliana|Camila|Rafael|Lucas|Beatriz|Catarina|Mariana|Gabriel)"
)
_A = "A countable noun in the singular needs an article."
_NO_THE = "No “the” stands here."
_IT = "An English sentence needs a subject: it."


def _with_article(match: re.Match[str]) -> str:
    words = match["wrong"]
    return f"{lexicon.article(words.split()[0].lower())} {words}"


def _plural(match: re.Match[str]) -> str | None:
    noun = match["noun"].lower()
    if not lexicon.is_singular(noun) or noun in _NO_PLURAL or lexicon.is_adjective(noun):
        return None
    return lexicon.plural(noun) or None


_NO_PLURAL = words(
    "hundred thousand million other more or and percent p.m a.m am pm people is in at on sheep fish "
    "information advice english o'clock half to was of"
)


def _any(match: re.Match[str]) -> str:
    return {"nothing": "anything", "nobody": "anybody", "nowhere": "anywhere", "no one": "anyone"}[
        match["wrong"].lower()
    ]


def _object(match: re.Match[str]) -> str:
    return {"he": "him", "she": "her", "they": "them", "i": "me", "we": "us"}[
        match["wrong"].lower()
    ]


_PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "article",
        rf"\b(?:am|is|i'm|he's|she's|was|be|become|as) [[{_JOBS}]]{_END}",
        _with_article,
        "A job needs “a” or “an”.",
    ),
    pattern(
        "article",
        rf"\b(?:have|has|had|need|needs|want|bought|buy) [[{_THINGS}]]{_END}",
        _with_article,
        _A,
    ),
    pattern(
        "article",
        rf"\b(?:have|has|had|need|needs|want|bought|buy|in|is|as|it's) "
        rf"[[{_ADJECTIVES} (?:{_THINGS}|place|city|town|country|day|man|woman|person|"
        rf"experience|teacher|student|film|movie|company|mistake)]]{_END}",
        _with_article,
        _A,
    ),
    pattern("article", rf"\bask (?:you|him|her|me|them) [[question]]{_END}", "a question", _A),
    pattern(
        "article",
        r"^what [[(?:beautiful|nice|lovely|great|good|terrible|bad|strange|wonderful) "
        r"(?:day|place|city|house|idea|surprise|game|film|story|man|woman|party|dog|car)]](?=\s*!)",
        _with_article,
        _A,
    ),
    pattern(
        "article",
        rf"\b(?:go|goes|went|going|to go) to [[{_PLACES}]]{_END}",
        lambda match: f"the {match['wrong']}",
        "This place needs “the”.",
    ),
    pattern(
        "article",
        r"\b(?:in|from|to|of) [[(?=United (?:States|Kingdom))(?-i:United) (?:States|Kingdom)]]",
        lambda match: f"the {match['wrong']}",
        "This country needs “the”.",
    ),
    pattern(
        "article",
        r"\b(?:on|in) [[(?:first|second|third|fourth|fifth|sixth|top|ground) floor]]",
        lambda match: f"the {match['wrong']}",
        "An ordinal number needs “the”.",
    ),
    pattern(
        "article",
        r"\b(?:is|am|are|was|were) [[(?:best|worst|biggest|tallest|oldest|youngest|"
        r"most \w+) \w+]] (?=in|of)",
        lambda match: f"the {match['wrong']}",
        "A superlative needs “the”.",
    ),
    pattern(
        "article",
        rf"(?:^|[.!?] )[[The (?:(?-i:{_NAMES})|my|your|his|our|their)]] ",
        lambda match: match["wrong"][4:],
        "No “the” stands before a name.",
    ),
    pattern("article", r"(?<=\w )[[the (?=(?:my|your|our|their) \w)]]", "", _NO_THE),
    pattern(
        "article",
        r"\b(?:have|has|had|eat|eats|having|after|before) [[the ]]"
        r"(?=(?:breakfast|lunch|dinner) (?:at|in|with|every|early|late)\b)",
        "",
        _NO_THE,
    ),
    pattern(
        "article",
        r"\b(?:go|goes|went) to [[the ]](?=work (?:by|on|at|every|early|with|in)\b)",
        "",
        _NO_THE,
    ),
    pattern(
        "article",
        r"\b(?:play|plays|played|playing) [[the ]]"
        r"(?=(?:football|tennis|basketball|volleyball|chess|cards|soccer|handball)\b(?! \w+s? (?:in|on|at) ))",
        "",
        _NO_THE,
    ),
    pattern(
        "article",
        r"^[[The (?:life|nature|happiness|love)]] (?=is (?:beautiful|hard|difficult|short|good|important|everything|not)\b)",
        lambda match: match["wrong"][4:],
        _NO_THE,
    ),
    pattern(
        "article",
        r"\b(?:love|like|hate|loves|likes) [[the ]](?=(?:nature|life|animals in general)\b)",
        "",
        _NO_THE,
    ),
    pattern(
        "grammar",
        r"(?:^|^\w+[!,.] |^(?:good \w+|hi|hello)[!,.] )[[(?P<be>is|was)]] "
        r"(?=(?:raining|snowing|very|really|so|too|important|difficult|easy|possible|"
        r"impossible|necessary|cold|hot|sunny|true|good|nice|better)\b[^?]*$)",
        lambda match: f"it {match['be'].lower()}",
        _IT,
    ),
    pattern(
        "grammar",
        r"\b(?:because|but|so|think|and) [[(?P<be>is|was)]] (?=(?:very|too|really|quiet|"
        r"cheap|beautiful|expensive|easy|difficult|cold|hot|far|near|important|fun|nice|raining)\b)",
        lambda match: f"it {match['be'].lower()}",
        _IT,
    ),
    pattern(
        "grammar",
        r"\b(?:two|three|four|five|six|seven|eight|nine|ten|many|several|few) "
        r"[[(?P<noun>\w+)]](?=\s*[.,!?;]|\s*$| (?:of|in|at|with|from|and|ago|asked|came|said|who|are|were|have)\b)",
        _plural,
        "After a number above one stands the plural.",
    ),
    pattern(
        "grammar",
        r"\b(?:don't|doesn't|didn't|can't|couldn't|won't|haven't|hasn't|not) "
        r"(?:\w+ ){1,2}[[(?:nothing|nobody|nowhere|no one)]]\b",
        _any,
        "One “not” is enough: not ... anything.",
    ),
    pattern(
        "grammar",
        r"\b(?:I|you|we|they|he|she) (?:like|likes|love|loves|hate|know|miss|saw|met|"
        r"called|helped) [[(?:she|he|they)]](?=\s*[.,!?;]|\s*$| (?:a lot|very much|so much|too|"
        r"at|in|on|yesterday|every)\b)",
        _object,
        "The object is him, her or them.",
    ),
    pattern(
        "grammar",
        r"\b(?:helped|help|helps|told|gave|called|asked|saw|teaches|taught) [[I]] (?=with|to|a|the|in|at|about)",
        _object,
        "The object is “me”.",
    ),
    pattern(
        "grammar",
        r"(?:^|[.!?] )[[(?P<who>he|she)]] (?:name|mother|father|brother|sister|wife|"
        r"husband|car|house|job|dog|cat|birthday) (?=is\b|was\b|has\b)",
        lambda match: {"he": "his", "she": "her"}[match["who"].lower()],
        "Before a noun stands his or her.",
    ),
    pattern(
        "verb_form",
        r"\b(?:I|you|we|they) [[no]] (?=(?:like|want|have|know|understand|speak|go|work|need|think|remember|agree|live|eat|drink)\b)",
        "don't",
        "A verb is negated by “don't”.",
    ),
    pattern(
        "grammar",
        r"^My (?:mother|father|brother|sister|wife|husband|friend|boss|teacher|son|daughter) [[(?:she|he) ]](?=\w)",
        "",
        "The sentence has its subject already.",
    ),
    pattern(
        "grammar",
        r"\bI (?:hurt|cut|burned|burnt|washed|enjoyed) [[me]](?=\s*[.,!?;]|\s*$| (?:when|in|with|at|while)\b)",
        "myself",
        "Subject and object are the same: myself.",
    ),
    pattern(
        "grammar",
        r"\bfriends? of [[(?P<w>me|him|her|us|them)]]\b(?! \w)",
        lambda match: {"me": "mine", "him": "his", "her": "hers", "us": "ours", "them": "theirs"}[
            match["w"].lower()
        ],
        "A friend of mine, of his, of hers.",
    ),
    pattern(
        "agreement",
        r"\b[[this]] (?=(?P<noun>\w+s|people|children) (?:are|were|have)\b)",
        lambda m: "these" if lexicon.is_plural(m["noun"].lower()) else None,
        "“These” stands before a plural.",
    ),
    pattern(
        "agreement",
        r"\b[[that]] (?=(?:shoes|books|people|children|things|men|women|glasses|days|"
        r"years|boys|girls|clothes|cars|houses|students|trousers) (?:are|were|is|was)\b)",
        "those",
        "“Those” stands before a plural.",
    ),
    pattern("grammar", r"\b[[childs]]\b", "children", "The plural of child is children."),
    pattern("grammar", r"\b[[womans]]\b(?!['\u2019])", "women", "The plural of woman is women."),
    pattern("grammar", r"\b[[mans]]\b", "men", "The plural of man is men."),
    pattern("grammar", r"\b[[peoples]]\b(?!['\u2019])", "people", "People is already a plural."),
    pattern(
        "grammar",
        r"\b(?:are|were|is|was) (?:very |so |really )?[[(?P<adj>intelligents|beautifuls|"
        r"importants|differents|friendlys|interestings|expensives|news (?=and))]]",
        lambda match: match["adj"].rstrip()[:-1],
        "English adjectives have no plural.",
    ),
    pattern("grammar", r"\b[[informations]]\b", "information", "Information has no plural."),
    pattern("grammar", r"\b[[advices]]\b", "advice", "Advice has no plural."),
    pattern("grammar", r"\b[[homeworks]]\b", "homework", "Homework has no plural."),
    pattern("grammar", r"\b[[furnitures]]\b", "furniture", "Furniture has no plural."),
)


def check(sentence: Sentence) -> Iterator[Issue]:
    """Yield wrong or missing articles, plurals, pronouns and subjects."""
    yield from found(sentence, _PATTERNS)
