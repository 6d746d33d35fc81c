"""Turns: what one message of the user does. Strict rules, without a model. Pure functions.

A rule that consents, searches or enriches needs every word of the message. A message that the rules
do not understand does nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

from my_agent.icp_finder.model import Icp
from my_agent.icp_finder.reading import answers, edits, vocabulary
from my_agent.icp_finder.reading.answers import Kind
from my_agent.icp_finder.reading.message_parser import ParsedMessage, has_content, parse_text
from my_agent.icp_finder.reading.vocabulary import NUMBERS, ORDINALS
from my_agent.icp_finder.sites import domain, mentions

Class = Literal["answer", "change", "question", "feedback", "talk", "unclear"]
Topic = Literal[
    "show",
    "more",
    "explain",
    "profile",
    "status",
    "rejected",
    "help",
    "question",
    "other",
    "greeting",
    "thanks",
    "bye",
    "chatter",
    "reject",
    "keep",
    "like",
    "restore",
    "candidate",
    "early",
    "noted",
    "",
]


class Turn(TypedDict):
    """What a message does.

    Attributes:
        kind: the class of the message. `change` also means new data and requested actions.
        topic: what a question, feedback or small talk is about.
        numbers: numbers of candidates that it names, as they were shown.
        name: name or domain of a candidate that it names; empty if none.
        words: a filter, or the reason of feedback.
        first: the number of the best candidates that an enrichment is limited to; 0: no limit.
        by: `rules` or `model`.
        sure: whether an action that the message asks for may start without a question.
    """

    kind: Class
    topic: Topic
    numbers: list[int]
    name: str
    words: str
    first: int
    by: Literal["rules", "model"]
    sure: bool


@dataclass(frozen=True)
class Situation:
    """What a message is read against.

    Attributes:
        asking: the kind of question that waits for an answer.
        asked: what was asked for last, if it is not a choice.
        icp: the profile, with the changes that wait for an answer.
        names: names and domains of the candidates that were shown, in order.
        known: domains of the company and its customers.
        confirmed: whether company and profile are confirmed.
    """

    asking: Kind | None = None
    asked: str | None = None
    icp: Icp | None = None
    names: Sequence[str] = ()
    known: frozenset[str] = field(default_factory=frozenset)
    confirmed: bool = False


@dataclass(frozen=True)
class Reading:
    """A message as the rules read it.

    Attributes:
        turn: what it does.
        choice: the option of the waiting question that it chooses.
        parsed: the data in it; without data for a question, feedback and small talk.
        missing: values to remove that the profile does not have.
        certain: whether the rules are sure; otherwise a model may read the message.
    """

    turn: Turn
    parsed: ParsedMessage
    choice: str | None = None
    missing: tuple[str, ...] = ()
    certain: bool = True


def turn(
    kind: Class,
    topic: Topic = "",
    *,
    numbers: Sequence[int] = (),
    name: str = "",
    words: str = "",
    first: int = 0,
    by: Literal["rules", "model"] = "rules",
    sure: bool = True,
) -> Turn:
    """Build a turn; the arguments are its fields."""
    return {
        "kind": kind,
        "topic": topic,
        "numbers": list(numbers),
        "name": name,
        "words": words,
        "first": first,
        "by": by,
        "sure": sure,
    }


_LIST = (
    r"(?:candidates?|compan(?:y|ies)|list|shortlist|results?|matches|prospects|leads|ones|kandidaten"
    r"|firmen|liste|candidat[ose]*s?|empresas|lista|entreprises|resultados|calon|daftar|perusahaan"
    r"|候选\w*|公司|列表|名单)"
)
_SHOW = re.compile(
    r"(?:(?:please\s+)?(?:show|list|display|print|see|view|give|repeat|bring up|zeig(?:e)?|montre[rz]?"
    r"|affiche[rz]?|muestra(?:me)?|muéstrame|enseña(?:me)?|mostre|mostra(?:r)?|lista|tunjukkan"
    r"|tampilkan|显示|给我看|列出)\b.*?"
    rf"(?:\b{_LIST}|\bthem\b|\bwhat you(?:'ve| have)? (?:have|found|got)\b|\beverything\b|\bthe\s+(?:top|best|first|rest)\b|\btop\s+\d+|\bagain\b|{_LIST})"
    r"|(?:who|what|which(?: ones| companies)?|whom) (?:did|have|do) you (?:find|found|get|got|have)\b"
    rf"|(?:what|which|who|where|welche|quel\w*|qué|cuáles|quais|apa|哪些).*?{_LIST}"
    rf"|(?:my |the )?(?:candidates|shortlist|list|results)(?: again| please)?$"
    rf"|{_LIST} (?:anzeigen|zeigen|bitte)"
    r"|show(?: me)?(?: please)?$|only (?:those|the ones)|(?:显示|给我看|列出))",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"(?:(?:show|give|list)\s+(?:me\s+)?(?:the\s+)?)?(?:next(?:\s+(?:page|\w+))?|more|the rest"
    r"|(?:some |a few |\d+ )?more(?: of them| candidates| companies| results| please)?|mehr(?: davon)?"
    r"|weitere|nächste(?: seite)?|plus|suivants?|más|siguientes?|mais|próxim[ao]s?(?: página)?|lagi"
    r"|更多|下一页)(?:\s+please)?\W*$",
    re.IGNORECASE,
)
_EXPLAIN = re.compile(
    r"\bwhy\b|\bexplain\b|\binfo(?:rmation)? (?:on|about)\b|\bdetails?\b|\btell me (?:more )?about\b|\bmore about\b|\bhow (?:did|do|was|is|come)\b"
    r".*\b(?:scor|rank|rat|first|second|third|found|find|know)|\bevidence\b|\breason\b|\bwhat (?:is|does|do|are)\b"
    r"|\bwho (?:is|are)\b|\bwhere (?:did|do|does|is)\b|\bphone\b|\bemails?\b|\bcontacts?\b|\bwebsite of\b"
    r"|\bscore\b|\bwarum\b|\bwieso\b|\berklär\w*|\bpourquoi\b|\bexplique\w*|\bpor qu[eê]\b|\bporqu[eê]\b"
    r"|\bperché\b|\bmengapa\b|\bkenapa\b|\bjelaskan\b|为什么|解释",
    re.IGNORECASE,
)
_OF_ONE = re.compile(
    r"\b(?:phone|telephone|e-?mails?|contacts?|address|score|evidence)\b", re.IGNORECASE
)
_PROFILE = re.compile(
    r"\b(?:what|which|who|where|show|list|tell|give|welche\w*|quel\w*|qué|cuáles|quais|apa|wie|how)\b.*?"
    r"\b(?:profile|icp|regions?|industr(?:y|ies)|sectors?|sizes?|keywords?|customers?|clients?"
    r"|(?:know|remember|have|stored?|store) (?:about|of) (?:us|me|our)|our (?:website|company|domain|data)"
    r"|my (?:website|company|data|settings)|searching (?:for|with|in)|looking for|regionen|branchen|profil"
    r"|régions|regiones|clientes|kunden|perfil|regiões|wilayah)\b"
    r"|\b(?:my|our|the) (?:profile|icp|settings)\s*\??$|\bideal customer\b.*\?",
    re.IGNORECASE,
)
_STATUS = re.compile(
    r"\bhow far\b|\bhow long\b|\bprogress\b|\bstatus\b|\b(?:is|are|was|has) .*\b(?:done|finished|ready|complete"
    r"|running|started)\b|\bdone yet\b|\bstill (?:running|going)\b|\bhow many .*\benriched\b|\bwie weit\b"
    r"|\bfertig\b|\bcombien de temps\b|\bavancement\b|\bterminé\b|\bprogreso\b|\bterminado\b|\bprogresso\b"
    r"|\bandamento\b|\bsudah selesai\b|进度|完成了吗",
    re.IGNORECASE,
)
_HELP = re.compile(
    r"\bhelp\b|\bwhat (?:can|could|do|should) (?:you|i|we)(?: do)?\b(?!.*\b(?:know|remember|have)\b)"
    r"|\bhow does (?:this|it) work\b|\bwhat (?:now|next)\b|\bwhat else\b|\bcommands?\b|\boptions\b"
    r"|\bwhat is this\b|\bhow (?:do|can) (?:i|we)\b|\bhilfe\b|\bwas kannst du\b|\baide[rz]?\b|\bayuda\b"
    r"|\bqué puedes\b|\bajuda\b|\bo que você\b|\bbantu\w*|帮助|你能做什么",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    r"\b(?:which|what|show|list|who)\b.*\b(?:reject(?:ed|ions)?|hidden|dismissed|discarded)\b",
    re.IGNORECASE,
)
_META = re.compile(
    r"\bwhy (?:do you (?:ask|need|want)|ask(?:ing)?)\b|\bwhat (?:do you mean|does (?:that|this|it) mean"
    r"|would (?:that|this|it) (?:do|cost|mean)|happens)\b|\bwhat(?:'s| is) (?:the difference|enrich\w*"
    r"|(?:re-?run|a |an )?discovery|a session|that|this)\b|\bwhat for\b|^why(?: not)?\s*\?*$|^huh\b|^(?:what|sorry)\s*\?+$"
    r"|\bhow (?:much|many|long)\b.*\b(?:cost|take|run)\b|\bcost\b|\b(?:does|do) (?:that|it|this) cost\b"
    r"|^wozu\b|^was (?:bedeutet|heißt)\b|^warum\s*\?*$|^pourquoi\s*\?*$|^¿?por qué\s*\?*$|^为什么[\uff1f?]*$",
    re.IGNORECASE,
)
_REJECT = re.compile(
    r"(?:reject|no to|get rid of|we already (?:work with|sell to|deal with)|dismiss|discard|hide|ignore|drop|remove|delete|exclude|kick out|cross out|throw out|skip"
    r"|not interested in|no interest in|don'?t (?:want|like|show)(?: me)?|lehne|verwirf|entferne|streiche?"
    r"|rejette[rz]?|enlève|supprime|rechaza(?:r)?|descarta(?:r)?|quita|elimina|rejeita(?:r)?|rejeite|descarte"
    r"|remova|tolak|buang)\b\s*(?P<target>.+)|(?:拒绝|排除|删除)\s*(?P<chinese>.+)",
    re.IGNORECASE,
)
_UNFIT = re.compile(
    r"(?P<target>.+?)(?<!\s)\s++(?:is|are|looks?|seems?|was|went|has)\s++(?:(?:just|really|definitely|far|way|much|clearly)\s+)*"
    r"(?P<why>(?:too (?:small|big|large|far|old|new|expensive|niche)|not (?:a |an )?(?:good |great |real )?"
    r"(?:fit|match|candidate|relevant|interesting|interested|suitable|right|for us|our type)|no (?:good )?(?:fit|match)|not what (?:we|i) (?:need|want|look for|are looking for)"
    r"|irrelevant|a (?:bad|poor) (?:fit|match)|a competitor|unsuitable|wrong for us|out of business|closed|shut down|bankrupt|already (?:a|our) customer).*)",
    re.IGNORECASE,
)
_KEEP = re.compile(
    r"(?:keep|save|star|bookmark|pin|shortlist|favou?rite|i (?:really )?like|we (?:really )?like|love"
    r"|behalte|merke?|garde[rz]?|guarda(?:r)?|conserva|mantém|mantenha|simpan)\b\s*(?P<target>.+)|(?:保留|收藏)\s*(?P<chinese>.+)",
    re.IGNORECASE,
)
_FIT = re.compile(
    r"(?P<target>.+?)(?<!\s)\s++(?:is|are|looks?|seems?|was)\s++(?:(?:really|definitely|a|an|very|quite)\s+)*"
    r"(?P<why>(?:good|great|perfect|excellent|promising|interesting|spot on|nice|right|ideal)"
    r"(?:\s+(?:one|fit|match|candidate|lead))*)\W*",
    re.IGNORECASE,
)
_LIKE = re.compile(
    r"(?:(?:find|show|give|get|search|i want|we want|more)\b.*?)?\b(?:more(?: of them)? like|similar(?:\s+\w+)? to|(?:companies |ones )like"
    r"|mehr wie|ähnlich wie|plus comme|comme|más como|parecid[ao]s? a|mais como|parecid[ao]s? com"
    r"|lebih seperti|seperti)\s+(?P<target>.+)|更多像(?P<chinese>.+)",
    re.IGNORECASE,
)
_RESTORE = re.compile(
    r"(?:restore|un-?reject|un-?hide|bring back|undo(?: the)?(?: reject(?:ion|ing)?)?(?: of)?|put back|re-?add)\s+(?P<target>.+)",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\s*(?:,|\(|-|:|\bbecause\b|\bsince\b|\bas\s+(?=it|they)|\bweil\b|\bda\b|\bparce qu\w*|\bporque\b|\bkarena\b|因为)\s*(?P<why>.+)$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?:#|\bno\.?\s*|\bn[°º]\s*|\bnumber\s*|\bnummer\s*|\bnuméro\s*|\bnúmero\s*|第)?\s*(?<![\w.])(\d{1,3})(?![\w.,]*\d)",
    re.IGNORECASE,
)
_TARGET = re.compile(
    r"(?:(?:the|die|den|la|le|el|o|a|os|as|les|los|nos\.?|numbers?|candidates?|company|companies|no\.?|nummer|n°|nº"
    r"|número|numéro|nomor|kandidat(?:en)?|candidat[oe]?|and|und|et|y|e|dan|one|ones|#|&|,|第|个|號|号|家)\s*"
    r"|#?\d{1,3}(?:st|nd|rd|th|\.)?\s*|(?:" + "|".join(ORDINALS) + r")\s*)+"
    r"(?:(?:from|of|in|off)\s+(?:the|my)\s+list|ab|again|please|bitte|too|only)?\W*$",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:(?:only|just|nur|seulement|solo|sólo|apenas|só|hanya)\s+)?(?:the\s+|die\s+|les\s+|los\s+|as\s+|os\s+)?"
    r"(?P<which>first|top|best|ersten|premiers?|primer[oa]s?|primeir[oa]s)\s+(?P<count>\w+)\b"
    r"|\b(?:only|just|nur|seulement|solo|sólo|apenas|só|hanya)\s+(?P<only>\w+)(?:\s+of them)?\s*$"
    r"|\b(?:the\s+|die\s+)?(?P<before>two|three|four|five|six|seven|eight|nine|ten|zwei|drei|\d+)\s+"
    r"(?:best|first|top|besten)\b"
    r"|\bles\s+(?P<french>\w+)\s+premiers\b",
    re.IGNORECASE,
)
_ENRICH = re.compile(r"\benrich\w*|\banreicher\w*|\breicher\w*|\benriqu\w*", re.IGNORECASE)
_FILTER = re.compile(
    r".*\b(?:in|from|with|near|aus|mit|dans|avec|en|con|em|com|di)\b\s+(?P<words>.+)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:saw|seen|read|found|competitors?|suppliers?|partners?|like|similar|visit(?:ed)?|blog|article"
    r"|news|example|e\.g\.|such as|heard|mentioned|inspired|compared|check|look(?:ing)? at|what about"
    r"|how about|interesting)\b",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(
    r"\b(?:as (?:a |an )?(?:candidate|prospect|lead)|to (?:the |my |our )?(?:candidates|list|shortlist|prospects|leads)"
    r"|is (?:a |an )(?:good |new |possible )?(?:candidate|prospect|lead))\b",
    re.IGNORECASE,
)
_BESIDE_NAMES = frozenset(
    (
        *("the", "company", "candidate", "it", "and", "from", "in", "my", "our", "list", "again"),
        *("too", "please", "ltd", "pte", "inc", "also", "der", "die", "la", "el", "le", "bitte"),
        *("they", "them", "to", "shortlist", "for", "later", "now"),
    )
)
# Most words of a message that may contain websites without a role, apart from them.
_LISTED = 8


def read(text: str, situation: Situation) -> Reading:
    """Read a message by rules.

    Args:
        text: the message.
        situation: what it is read against.
    """
    plain = vocabulary.plain(text).strip()
    parsed = parse_text(text)
    nothing: ParsedMessage = {**parse_text(""), "text": text}
    if not plain:
        return Reading(turn("unclear"), nothing)
    if situation.asking and (choice := answers.parse(situation.asking, text)) is not None:
        is_refusal = choice == answers.refusal(situation.asking)
        # `No, we sell to hospitals` refuses, but it also says what to change.
        if not (is_refusal and _edits(text, situation).icp):
            return Reading(turn("answer"), nothing, choice=choice)
    if (talk := _talk(plain)) is not None:
        return Reading(turn("talk", talk), nothing)
    if (limited := _limited(plain, text, situation)) is not None:
        return limited
    if (found := _feedback(plain, text, situation)) is not None:
        return Reading(found, nothing)
    if (found := _question(plain, text, situation)) is not None:
        return Reading(found, nothing, certain=found["topic"] != "other")
    return _data(plain, text, parsed, situation)


def _data(plain: str, text: str, parsed: ParsedMessage, situation: Situation) -> Reading:
    """Read websites, changes of the ICP and requested actions."""
    changed = _edits(text, situation)
    parsed = {**parsed, "icp": changed.icp or parsed["icp"] if not changed.missing else changed.icp}
    if has_content(parsed) or changed.missing:
        # `Enrichment sounds expensive` begins like a request.
        sure = parsed["wish"] is None or answers.names_only(plain, parsed["wish"])
        return Reading(turn("change", sure=sure), parsed, missing=tuple(changed.missing))
    if situation.asked in ("website", "customers", "industries", "icp") and not situation.asking:
        # Free text is what was asked for; the node that asked reads it.
        return Reading(turn("answer"), parsed, certain=situation.asked in ("website", "customers"))
    return Reading(turn("unclear"), parsed, certain=False)


def _edits(text: str, situation: Situation) -> edits.Edits:
    return edits.read(text, situation.icp)


def _talk(plain: str) -> Topic | None:
    kinds: list[tuple[Topic, re.Pattern[str]]] = [
        ("greeting", vocabulary.GREETING),
        ("thanks", vocabulary.THANKS),
        ("bye", vocabulary.BYE),
        ("chatter", vocabulary.CHATTER),
    ]
    return next((kind for kind, words in kinds if words.fullmatch(plain)), None)


def _limited(plain: str, text: str, situation: Situation) -> Reading | None:
    """Read a consent to enrich, or a request for it, that is limited to some candidates."""
    names_it = _ENRICH.search(plain) is not None
    if not names_it and situation.asking != "enrich":
        return None
    if ("?" in plain and not vocabulary.requested(plain)) or vocabulary.is_question(plain):
        return None
    if vocabulary.UNSURE.search(plain):
        return None
    rest = re.sub(r"^no[,.]?\s+(?=(?:only|just|enrich)\b)|^not all\W+", "", plain)
    if vocabulary.NEGATION.search(vocabulary.YES_PHRASES.sub(" ", rest)):
        return None
    rest = vocabulary.POLITE.sub("", _REASON.sub("", rest) if "because" in rest else rest, count=1)
    parsed = {**parse_text(""), "text": text}
    wish: Any = {**parsed, "wish": "enrich"}
    if limit := _LIMIT.search(rest):
        count = NUMBERS.get(
            limit["count"] or limit["only"] or limit["before"] or limit["french"] or "", 0
        )
        left = _LIMIT.sub(" ", rest)
        if count and _is_only(left):
            return Reading(turn("change", first=count), wish)
        if limit["only"] is None or not names_it:
            return None
    left = _ENRICH.sub(" ", rest).strip()
    left = re.sub(r"^(?:(?:but|only|just|nur|aber|the|solo|apenas)\s+)+", "", left)
    numbers = _numbers(left)
    if numbers and _TARGET.fullmatch(left.strip(" ,.!") + " "):
        return Reading(turn("change", numbers=numbers), wish)
    # `Only Harbour` answers the question; `Harbour` alone may mean anything.
    is_limit = re.match(r"\W*(?:but |yes,? )*(?:only|just|nur)\b", rest) is not None
    name = _name(left, situation) if names_it or is_limit else ""
    if name and (names_it or _target(left, situation)):
        return Reading(turn("change", name=name), wish)
    return None


def _is_only(left: str) -> bool:
    """Return whether nothing but consent, the word enrich and fillers is left."""
    words = vocabulary.tokens(_ENRICH.sub(" ", vocabulary.YES_PHRASES.sub(" ", left)))
    # Words that may stand beside a limit.
    beside = frozenset(
        (
            *("only", "just", "nur", "seulement", "solo", "sólo", "apenas", "só", "hanya", "but"),
            *("aber", "pero", "mais", "mas", "tapi", "companies", "candidates", "ones"),
            *("run", "start", "begin", "do", "with", "enrichment"),
        )
    )
    return all(w in vocabulary.YES or w in vocabulary.FILLERS or w in beside for w in words)


def _feedback(plain: str, text: str, situation: Situation) -> Turn | None:
    """Read feedback on a candidate. It must name one, by number, name or domain."""
    if vocabulary.is_question(plain) or (plain.endswith("?") and not vocabulary.requested(plain)):
        return None
    asked = vocabulary.POLITE.sub("", plain.strip(" .!"), count=1)
    if _CANDIDATE.search(asked) and (sites := [each.website for each in mentions(text)]):
        return turn("feedback", "candidate", name=domain(sites[0]))
    kinds: list[tuple[Topic, re.Pattern[str]]] = [
        ("restore", _RESTORE),
        ("like", _LIKE),
        ("reject", _REJECT),
        ("reject", _UNFIT),
        ("keep", _KEEP),
        ("keep", _FIT),
    ]
    for topic, words in kinds:
        found = words.fullmatch(asked)
        if found is None:
            continue
        parts = found.groupdict()
        target, why = parts.get("chinese") or parts["target"], parts.get("why") or ""
        if not why and (reason := _REASON.search(target)):
            head = target[: reason.start()]
            if _target(head, situation) is not None:
                target, why = head, reason["why"].strip(" )")
        aimed = _target(target, situation)
        if topic == "restore" and aimed is None:
            # A rejected candidate is not among those that were shown.
            aimed = {"name": target.strip(" .,!")}
        if aimed is not None:
            return turn("feedback", topic, words=why.strip(" )."), **aimed)
    return None


def _target(words: str, situation: Situation) -> dict[str, Any] | None:
    """Return the candidates that some words name; None if they name something else."""
    words = words.strip(" .,!")
    numbers = _numbers(words)
    if numbers and _TARGET.fullmatch(words + " "):
        return {"numbers": numbers}
    name = _name(words, situation)
    # The rest must not name something else: `drop steel, and our website is now acme.org`.
    known = {*vocabulary.tokens(name.casefold()), *_BESIDE_NAMES}
    site = [each for each in mentions(words) if domain(each.website) == name]
    rest = words.replace(words[site[0].start : site[0].end], " ") if site else words
    foreign = [word for word in vocabulary.tokens(rest.casefold()) if word not in known]
    return {"name": name} if name and not foreign else None


def _numbers(words: str) -> list[int]:
    found = [int(each) for each in _NUMBER.findall(words)]
    found += [int(each) for each in re.findall(r"\b(\d{1,3})(?:st|nd|rd|th)\b", words)]
    found += [ORDINALS[each] for each in vocabulary.tokens(words) if each in ORDINALS]
    found += [NUMBERS[each] for each in re.findall(r"\bnumber (\w+)", words) if each in NUMBERS]
    return list(dict.fromkeys(number for number in found if number > 0))


def _name(words: str, situation: Situation) -> str:
    """Return the name of a candidate that was shown, or the domain, in some words."""
    sites = [each.website for each in mentions(words)]
    if sites:
        return domain(sites[0])
    folded = " ".join(re.findall(r"\w+", words.casefold()))
    best = ""
    for name in situation.names:
        whole = " ".join(re.findall(r"\w+", name.casefold()))
        # The first word is enough if it is the name's own and not that of another candidate.
        first = whole.partition(" ")[0]
        others = [each for each in situation.names if each.casefold().startswith(first)]
        is_named = whole and re.search(rf"\b{re.escape(whole)}\b", folded)
        is_short = (
            len(first) > 3 and len(others) == 1 and re.search(rf"\b{re.escape(first)}\b", folded)
        )
        if (is_named or is_short) and len(name) > len(best):
            best = name
    return best


def _question(plain: str, text: str, situation: Situation) -> Turn | None:
    """Read a question, or a request to show something."""
    asked = vocabulary.POLITE.sub("", plain, count=1).strip(" .!")
    requested = vocabulary.requested(plain)
    name = _name(asked, situation)
    # A path such as `/company` is not a word of the question.
    for each in reversed(list(mentions(asked))):
        asked = f"{asked[: each.start]} {asked[each.end :]}"
    numbers = _numbers(asked)
    asks = vocabulary.is_question(plain)
    shows = _SHOW.match(asked) is not None
    asks = asks or shows or _MORE.match(asked) is not None or _EXPLAIN.match(asked) is not None
    asks = asks or _HELP.match(asked) is not None or _STATUS.match(asked) is not None
    asks = asks or re.match(r"(?:tell|explain|describe|zeig|show)\b", asked) is not None
    if not asks:
        return None
    if requested and parse_text(text)["wish"]:
        return None
    if _META.search(asked) and not numbers and not name:
        return turn("question", "question")
    if _REJECTED.search(asked):
        return turn("question", "rejected")
    if _MORE.match(asked):
        return turn("question", "more")
    if (numbers or name) and (not shows or not _LIMIT.search(asked)):
        return turn("question", "explain", numbers=numbers, name=name, words=asked)
    if _PROFILE.search(asked) and not re.search(r"\bcandidates?\b|\bshortlist\b", asked):
        return turn("question", "profile")
    if shows:
        words = found["words"] if (found := _FILTER.match(asked)) else ""
        words = re.sub(rf"\b(?:the|my|our|{_LIST})\b|[?]", "", words).strip() if words else ""
        return turn("question", "show", words=words)
    if _STATUS.search(asked):
        return turn("question", "status")
    if _OF_ONE.search(asked):
        # It asks about a candidate without naming it; the answer asks which one.
        return turn("question", "explain", words=asked)
    if _HELP.search(asked):
        return turn("question", "help")
    return turn("question", "other", words=asked)


def is_listing(text: str, asked: str | None) -> bool:
    """Return whether a message lists websites, rather than mentions them in passing."""
    words = text
    for each in reversed(list(mentions(text))):
        words = words[: each.start] + " " + words[each.end :]
    if _ELSEWHERE.search(words):
        return False
    return len(words.split()) <= _LISTED or asked in ("website", "customers")
