"""Usage: prepositions, false friends and collocations, above all of speakers of Portuguese."""

import re
from collections.abc import Iterator

from my_agent.tutor.corrections import Issue
from my_agent.tutor.rules import lexicon
from my_agent.tutor.rules.patterns import Pattern, Remedy, found, pattern
from my_agent.tutor.rules.sentences import Sentence

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_UNIT = r"(?:minutes|hours|days|weeks|months|years)"
_NUMBER = r"(?:two|three|four|five|six|seven|eight|nine|ten|many|several|\d+)"
_PERSON = (
    r"(?:my (?:mother|father|friend|friends|teacher|boss|sister|brother|wife|husband|parents|son|"
    r"daughter|girlfriend|boyfriend|mom|mum|dad|boss|grandmother|doctor|colleague)|him|her|them)"
)
_BE = r"(?:am|is|are|was|were|be|been|i'm|he's|she's|we're|they're|you're)"
_NP = r"(?:the|my|your|his|her|our|their|a|some|this|that) "
_STUDY = (
    r"(?:study|travel|go|work|buy|visit|live|move|learn|get|start|finish|return|marry|stay|make|"
    r"take|speak|improve|open)"
)


def _prep(expression: str, remedy: Remedy, message: str) -> Pattern:
    return pattern("preposition", expression, remedy, message)


def _word(expression: str, remedy: Remedy, message: str) -> Pattern:
    return pattern("word_choice", expression, remedy, message)


def _same_form(forms: dict[str, str]) -> Remedy:
    """Return a remedy that looks the wrong words up, and leaves unknown ones alone."""
    return lambda match: forms.get(match["wrong"].lower())


def _comparative(match: re.Match[str]) -> str | None:
    adjective = match["adjective"].lower()
    return {"good": "better", "bad": "worse", "far": "further"}.get(
        adjective
    ) or lexicon.comparative(adjective)


def _many(match: re.Match[str]) -> str | None:
    noun = match["noun"].lower()
    if not lexicon.is_plural(noun) and noun != "people":
        return None
    return "many" if match["wrong"].lower() == "much" else None


def _arrive(match: re.Match[str]) -> str:
    return "in" if match["place"][0].isupper() else "at"


def _am_is(match: re.Match[str]) -> str:
    return {"i": "am", "he": "is", "she": "is", "it": "is"}.get(match["who"].lower(), "are")


_PREPOSITIONS: tuple[Pattern, ...] = (
    _prep(
        rf"\b[[in]] (?:(?:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|{_MONTH} \d{{1,2}}\b(?! ?\d))",
        "on",
        "A day needs “on”.",
    ),
    _prep(
        rf"\b[[(?:in|at)]] (?={_DAY}s?\b(?! (?:morning|night)['s]))",
        "on",
        "A day of the week needs “on”.",
    ),
    _prep(rf"\b[[(?:on|at)]] (?:{_MONTH})\b(?! \d|['\u2019]|,? I)", "in", "A month needs “in”."),
    _prep(r"\b(?<!and )[[(?:in|on)]] (?=(?:night|midnight|noon)\b)", "at", "We say “at night”."),
    _prep(r"\b[[in]] the weekends?\b", "at", "We say “at the weekend”."),
    _prep(
        r"\b[[(?:on|at)]] the (?:morning|afternoon|evening)\b(?! of)",
        "in",
        "We say “in the morning”.",
    ),
    _prep(
        r"\b(?:starts?|started|begins?|began|ends?|open|opens|closes?|leaves?|is|was) [[in]] "
        r"(?:(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) o'clock|\d{1,2}[:.]\d\d)",
        "at",
        "A time of the clock needs “at”.",
    ),
    _prep(r"\b[[(?:by|in|with)]] foot\b", "on", "We go “on foot”."),
    _prep(r"\b(?:married|engaged) [[with]]\b", "to", "We are married to somebody."),
    _prep(r"\bdepend(?:s|ed|ing)? [[(?:of|from)]]\b", "on", "We depend on something."),
    _prep(
        r"\b(?:good|bad|better|best|terrible|brilliant) [[in]] (?:mathematics|maths|math|english|"
        r"languages|sports?|football|chess|history|science|cooking|drawing|music|\w+ing)\b",
        "at",
        "We are good at something.",
    ),
    _prep(
        rf"\blisten(?:s|ed|ing)? [[(?=(?:music|radio|podcasts|songs|me|him|her|them|you|{_NP}\w+)\b)]]",
        "to ",
        "We listen to something.",
    ),
    _prep(
        rf"\bwait(?:s|ed|ing)? [[(?=(?:me|him|her|them|you|us|(?:the|my|your|his|our) (?:bus|train|"
        rf"taxi|doctor|plane|answer|result|results|friend|friends|weekend|holidays|next)|{_PERSON})\b)]]",
        "for ",
        "We wait for somebody.",
    ),
    _prep(r"\bdiscuss(?:ed|es|ing)? [[about ]]", "", "“Discuss” has no preposition."),
    _prep(
        rf"\b(?:call|called|calling|phone|phoned|visit|visited|marry|married|invite|invited) [[to ]]"
        rf"(?={_PERSON})",
        "",
        "This verb has no preposition.",
    ),
    _prep(
        rf"\b(?:ask|asked|asks) [[to ]](?={_PERSON} (?:for|if|about|to|what|why|where|how|when)\b)",
        "",
        "“Ask” has no preposition.",
    ),
    _prep(r"\binterested [[(?:on|about|for|at|with)]]\b", "in", "We are interested in something."),
    _prep(
        r"\bthink(?:ing|s)? [[(?:in|on)]](?=\?| (?:you|me|him|her|my|our|his|the future|it)\b)",
        "about",
        "We think about something.",
    ),
    _prep(
        r"\b(?:afraid|scared|proud|tired|jealous) [[(?:from|with|about|for)]]\b",
        "of",
        "This adjective needs “of”.",
    ),
    _prep(
        r"\barriv(?:e|es|ed|ing) [[to]] (?:the )?(?P<place>\w)",
        _arrive,
        "We arrive at a place, or in a city.",
    ),
    _prep(r"\barriv(?:e|es|ed|ing) [[(?:in|at|to) ]](?=home\b)", "", "We arrive home."),
    _prep(
        r"\b(?:go|goes|going|went|come|came|coming|get|got) [[(?:to|in|at) ]](?=home\b)",
        "",
        "We go home.",
    ),
    _prep(
        r"\bexplain(?:ed|s)? [[(?:me|us|him|them)]] (?=the|my|how|why|what|this|that|a)",
        lambda m: f"to {m['wrong'].lower()}",
        "We explain something to somebody.",
    ),
    _prep(
        r"\b(?:dream|dreams|dreamed|dreamt) [[with]]\b(?! a smile)",
        "about",
        "We dream about something.",
    ),
    _prep(r"\bresponsible [[(?:of|by)]]\b", "for", "We are responsible for something."),
    _prep(r"\bdifferent [[of]]\b", "from", "Something is different from something."),
    _prep(
        r"\b(?:angry|furious|annoyed) [[(?:of|to)]] (?:me|you|him|her|us|them|my|his|the)\b",
        "with",
        "We are angry with somebody.",
    ),
    _prep(
        r"\b(?:worried|concerned|excited|curious) [[(?:with|of|for)]]\b",
        "about",
        "We are worried about something.",
    ),
    _prep(
        r"\bpay(?:s|ing)? [[(?=(?:the|my|your|our) (?:tickets?|dinner|lunch|food|drinks?|meal|coffee|"
        r"course|lessons?|hotel|taxi)\b)]]",
        "for ",
        "We pay for what we buy.",
    ),
    _prep(
        r"\b(?:look|looked|looking|looks) [[to]] (?:the|my|your|this|that|his|her) (?:photo|photos|"
        r"picture|pictures|sky|screen|map|mirror|sea|window|stars|clock|face|eyes)\b",
        "at",
        "We look at something.",
    ),
    _prep(r"\bparticipat(?:e|ed|es|ing) [[(?:of|on|at)]]\b", "in", "We participate in something."),
    _prep(
        r"\b(?:I|you|we|they|he|she|to) enter(?:s|ed)? [[(?:in|to) ]](?=the|my|a|his|her|our)",
        "",
        "“Enter” has no preposition.",
    ),
    _prep(
        r"\b(?:spend|spends|spent) [^.,;]{1,24}?\bmoney [[(?:in|with)]]\b",
        "on",
        "We spend money on something.",
    ),
    _prep(
        rf"\b[[since]] (?:{_NUMBER} {_UNIT}|a long time)\b(?! ago)",
        "for",
        "A length of time needs “for”, its beginning “since”.",
    ),
    _prep(
        r"\b(?:have|has|'ve|'s) (?:been |lived |worked |known |studied )[^.,;?]*?\b[[for]] (?=(?:19|20)\d\d\b)",
        "since",
        "A length of time needs “for”, its beginning “since”.",
    ),
    _prep(
        r"\bwelcome [[in]] (?=my|our|the|\w+land|portugal|brazil|lisbon)",
        "to",
        "We are welcome to a place.",
    ),
    _prep(
        r"\b(?:talk|talked|talking|talks|spoke|speak) [[with]] (?=(?:many|some|different|a lot of) (?:things|subjects|topics|problems))",
        "about",
        "We talk about things, with people.",
    ),
    _prep(
        r"\b(?:work|works|worked|open|from) [[of]] (?=monday|tuesday|\d|nine|eight)",
        "from",
        "From Monday to Friday.",
    ),
    _prep(
        r"\b(?:agree|agrees|agreed) [[to]] (?:you|him|her|them|me)\b",
        "with",
        "We agree with somebody.",
    ),
    _prep(r"\b(?:succeed|succeeded) [[on]]\b", "in", "We succeed in something."),
    _prep(r"\bin love [[(?:for|by|to)]]\b", "with", "We are in love with somebody."),
    _prep(
        r"\b(?:similar|used|thanks) [[with]] (?=the|my|this|that|you)",
        "to",
        "This word needs “to”.",
    ),
    _prep(
        r"\b(?:live|lives|lived|was|am|is|stay|stayed) [[at]] (?=(?:Portugal|Brazil|Lisbon|Porto|London|Spain|France|England)\b)",
        "in",
        "A city or country needs “in”.",
    ),
)


def _state(match: re.Match[str]) -> str:
    who = match["who"].lower()
    if match["wrong"].lower() == "had":
        return "were" if who in {"you", "we", "they"} else "was"
    return _am_is(match)


_WORDS: tuple[Pattern, ...] = (
    _word(
        r"\b(?P<who>I|you|he|she|we|they) (?:always |also |really )?[[(?:have|has|had)]] "
        r"(?=(?:very |so |really )?(?:hungry|thirsty|afraid|sleepy|scared|happy|sad|tired|lucky)\b|"
        r"(?:only )?(?:\d+|twenty|thirty|forty|fifty)(?:-\w+| (?:one|two|three|four|five|six|seven|eight|nine))? years old)",
        _state,
        "In English we are hungry, afraid or 25 years old.",
    ),
    _word(
        r"\b(?P<who>I|you|he|she|we|they) [[(?:have|has|had)]] (?=(?:right|reason)(?=[.,!]|$))",
        _state,
        "In English we are right.",
    ),
    _word(
        rf"\b(?:I|we) [[(?:pretend)]] (?=to {_STUDY}\b)",
        "intend",
        "“Pretend” means to act as if. A plan is what we intend.",
    ),
    _word(
        r"\b(?:I|he|she|they|we|you|\w+) [[(?:said|says|say)]] (?=(?:me|us|him|her|them)\b(?! (?:hi|hello|goodbye)))",
        _same_form({"said": "told", "says": "tells", "say": "tell"}),
        "We tell somebody something.",
    ),
    _word(
        r"\b[[(?:did|do|does|make|makes|made)]] (?=(?:me |you |him |her |us |them )?(?:a|some|many|the) (?:\w+ )?questions?\b)",
        _same_form(
            {
                "make": "ask",
                "makes": "asks",
                "made": "asked",
                "do": "ask",
                "did": "asked",
                "does": "asks",
            }
        ),
        "We ask a question.",
    ),
    _word(
        r"\b[[(?:did|do|does|doing|done)]] (?=(?:a|an|some|many|the|my|his|her|this|that|your) (?:\w+ )?(?:mistakes?|decisions?|bed|noise|"
        r"plans?|money|cake|choice|party|coffee|phone call)\b(?! \w+\?))",
        _same_form(
            {"did": "made", "do": "make", "does": "makes", "doing": "making", "done": "made"}
        ),
        "We make a mistake, a decision or the bed.",
    ),
    _word(
        r"\b[[(?:make|made|makes|making)]] (?=(?:a|an|some|the|my|your|his|her) (?:homework|exercises?|sports?|exam|course|shopping|housework|favou?r)\b)",
        _same_form({"make": "do", "made": "did", "makes": "does", "making": "doing"}),
        "We do homework, exercise or a course.",
    ),
    _word(
        r"\b[[(?:do|did|make|made|doing)]] (?=(?:a|some|many|the) (?:\w+ )?(?:photos?|pictures?|shower|bath|break)\b)",
        _same_form(
            {"do": "take", "did": "took", "make": "take", "made": "took", "doing": "taking"}
        ),
        "We take a photo, a shower or a break.",
    ),
    _word(
        r"\b[[(?:lost|lose|loses|losing)]] (?=(?:the|my|our|his|her) (?:bus|train|plane|flight|class|lesson|boat|metro)\b)",
        _same_form({"lost": "missed", "lose": "miss", "loses": "misses", "losing": "missing"}),
        "We miss a bus or a class.",
    ),
    _word(
        rf"\b[[(?:passed|pass)]] (?=(?:\w+ )?(?:(?:{_NUMBER}|a few|some|a|the|my|our|all|last) )+(?:{_UNIT}|day|week|weekend|month|"
        r"holidays?|summer|christmas|night|time|afternoon|morning)\b(?! since| ago| before))",
        _same_form({"passed": "spent", "pass": "spend"}),
        "We spend time.",
    ),
    _word(
        r"\b(?<!as )(?<!how )(?<!so )(?<!too )[[much]] (?P<noun>\w+)",
        _many,
        "“Many” stands before what can be counted.",
    ),
    _word(
        r"\b[[more (?P<adjective>tall|short|big|small|cheap|easy|hard|old|young|fast|slow|happy|nice|good|bad|"
        r"cold|hot|warm|early|late|high|low|rich|poor|strong|weak|long|large|near|far|funny|busy|pretty|clean|"
        r"heavy|thin|fat|safe|healthy|lazy|noisy|new)]]\b(?! \w+s\b)",
        _comparative,
        "Short adjectives end in -er.",
    ),
    _word(
        r"\b[[most (?P<adj>good|bad)]]\b",
        lambda m: {"good": "best", "bad": "worst"}[m["adj"].lower()],
        "Good, better, best.",
    ),
    _word(
        r"\bmore \w+ [[that]] (?=(?:me|you|him|her|us|them|my|your|his|the|last)\b)",
        "than",
        "Comparisons need “than”.",
    ),
    _word(
        r"\b[[(?:borrow|borrowed)]] (?=(?:me|him|us|them)\b)",
        _same_form({"borrow": "lend", "borrowed": "lent"}),
        "The owner lends, the other one borrows.",
    ),
    _word(
        r"\b[[(?:assisted|assist)]] (?:to )?(?=(?:the|a) (?:game|film|movie|match|show|concert|class)\b)",
        _same_form({"assisted": "watched", "assist": "watch"}),
        "“Assist” means to help. We watch a film.",
    ),
    _word(
        r"\b(?:please|can you|could you|will you|to|[.,]) [[remember]] (?=(?:me|him|us|them) to\b)",
        "remind",
        "We remind somebody to do something.",
    ),
    _word(
        r"\b[[(?:fabric|fabrics)]] (?=(?:that|which) (?:makes?|produces?|made)\b|(?:of|where)\b(?= (?:shoes|cars|paper|clothes|I|he|she|we|they)))",
        _same_form({"fabric": "factory", "fabrics": "factories"}),
        "“Fabric” is cloth. Goods are made in a factory.",
    ),
    _word(
        r"\b(?:a|an) [[fabric]] (?=that)",
        "factory",
        "“Fabric” is cloth. Goods are made in a factory.",
    ),
    _word(
        r"\b[[(?:win|wins)]] (?=(?:a|an|my|his|her|\w+) (?:\w+ )?salary\b)",
        _same_form({"win": "earn", "wins": "earns"}),
        "We earn a salary.",
    ),
    _word(
        r"^[[have]] (?=(?:many|some|a lot of|several) \w+ (?:in|on|at|here|there)\b)",
        "there are",
        "What exists is told by “there are”.",
    ),
    _word(r"\bcan(?:not|'t)? [[assist]] (?=(?:the )?classes?\b)", "attend", "We attend a class."),
    _word(
        r"\b[[(?:realized|realised)]] (?=(?:a|an|the) (?:\w+ )?(?:exam|test|course|party|work|project|meeting)\b)",
        "did",
        "“Realize” means to understand.",
    ),
    _word(
        r"\b[[parents]] (?=(?:like|such as) (?:uncles?|aunts?|cousins?)\b)",
        "relatives",
        "Parents are father and mother.",
    ),
    _word(
        r"\b(?:very|so|too) [[(?:sensible)]] (?=and (?:cries|cry))",
        "sensitive",
        "“Sensible” means reasonable.",
    ),
    _word(
        r"\b(?:there is|there's|is|with|too|so|have) [[many]] (?=(?:time|money|water|work|noise|information|traffic|people's)\b)",
        "much",
        "“Much” stands before what cannot be counted.",
    ),
)
_LANGUAGES = (
    r"(?:english|portuguese|spanish|french(?! fries)|german|italian|brazilian|american|british|"
    r"chinese|japanese|russian|dutch|swedish|greek|mexican|canadian|australian|african|european)"
)
_CAPITALS: tuple[Pattern, ...] = (
    pattern(
        "capitalization",
        rf"\b[[(?-i:{_LANGUAGES})]]\b",
        lambda m: m["wrong"].capitalize(),
        "Languages and nationalities begin with a capital letter.",
    ),
    pattern(
        "capitalization",
        r"(?<![\w/.-])[[(?-i:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|april|june|july|"
        r"august|september|october|november|december)]]\b(?![./-]\w)",
        lambda m: m["wrong"].capitalize(),
        "Days and months begin with a capital letter.",
    ),
    pattern(
        "capitalization",
        r"(?:^|\s)[[(?-i:i)]](?=\s|'|\u2019)(?!\s*\))",
        "I",
        "“I” is always a capital letter.",
    ),
    pattern(
        "punctuation",
        r"\b(?:(?-i:[Ii])|we|you|they|he|she|it) [[(?:dont|cant|wont|didnt|doesnt|isnt|arent|wasnt|havent|hasnt|wouldnt|couldnt|shouldnt)]]\b",
        lambda m: m["wrong"][:-1] + "'t",
        "The apostrophe stands for the missing letter.",
    ),
    pattern(
        "punctuation",
        r"^[[its]] (?=(?:a|an|the|very|so|too|not|my|your|cold|hot|raining|important|"
        r"difficult|easy|nice|good|true|ok|okay|great|time|late|fine)\b)",
        "it's",
        "“It's” is short for “it is”.",
    ),
    pattern(
        "punctuation",
        r"\bmy [[(?:brothers|sisters|mothers|fathers|friends|wifes|husbands|bosss)]] "
        r"(?=(?:car|house|name|birthday|dog|cat|job|room|phone|wedding|party|school) ?(?:is|was|\.|,|$))",
        lambda m: m["wrong"][:-1] + "'s",
        "The owner takes 's.",
    ),
    pattern(
        "repetition",
        r"\b[[(?P<again>to|the|a|an|of|in|on|for|and|is|my|i|we|he|she)(?: (?P=again)\b)+]]",
        lambda m: m["again"],
        "This word stands there twice.",
    ),
)


def check(sentence: Sentence) -> Iterator[Issue]:
    """Yield wrong prepositions, words, capital letters and apostrophes."""
    for patterns in (_CAPITALS, _PREPOSITIONS, _WORDS):
        yield from found(sentence, patterns)
