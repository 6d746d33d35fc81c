"""Vocabulary: the words of consent, refusal and questions that the rules know. Pure data.

English, with the common words of German, French, Spanish, Portuguese, Italian, Malay and Chinese.
"""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# fmt: off
YES = _words(
    "très go perfekt super prima bien bueno bom buono d'accordo oke siap absolument exactement "
    "exacto exato esatto stimmt richtig korrekt "
    "y yes yeah yep yup sure ok okay k right correct confirm confirmed agree agreed "
    "approved absolutely definitely certainly perfect great fine good cool alright "
    "exactly ja jawohl klar gerne genau passt einverstanden natürlich los oui ouais "
    "parfait volontiers sí si claro vale dale adelante perfecto correcto sim pode "
    "perfeito certo sì certo perfetto ya boleh baik setuju betul lanjutkan 是 是的 好 好的 对 可以 "
    "行 确认 はい "
)
"""Words that agree."""

WEAK = _words("ok okay k great fine good cool alright go los pode super")
"""Words of `YES` that also just take note of something."""

THANKED = _words("thanks thank danke merci gracias obrigado obrigada grazie terima 谢谢")

YES_PHRASES = re.compile(
    r"\bno (?:problem|worries|objections?)\b|\bgo (?:ahead|on|for it)\b|\b(?:please )?do (?:it|so|that)\b"
    r"|\bplease do\b|\b(?:looks?|sounds?|seems?) (?:all )?(?:good|right|fine|great|perfect)(?: to me)?\b"
    r"|\bof course\b|\bthat'?s (?:it|right|fine|correct|good)\b|\bthat is (?:right|fine|correct|good)\b"
    r"|\blet'?s (?:go|do it|do that)\b|\blet us (?:go on|go|do it)\b|\bworks for me\b|\bkein problem\b"
    r"|\bleg los\b|\bauf jeden fall\b|\bbien sûr\b|\bd'accord\b|\bvas-y\b|\ballez-y\b"
    r"|\bpas de problème\b|\bde acuerdo\b|\bpor supuesto\b|\bsin problemas?\b|\bpode ser\b"
    r"|\bisso mesmo\b|\bsem problemas?\b|\bva bene\b|\btentu saja\b|没问题",
    re.IGNORECASE,
)
"""Phrases that agree, also those with a word of refusal in them."""

FILLERS = _words(
    "us our there am are be c'est est es das ist é já ya so again today "
    "please thanks thank you very much now then and so that this these those it its it's "
    "is all the them they with me for to i'd i we like think that's will well um hm hmm "
    "great lovely nice yes everything bitte danke sehr alles mal jetzt merci beaucoup "
    "s'il te vous plaît por favor gracias obrigado obrigada grazie terima kasih tolong 请 "
    "谢谢 of "
)
"""Words that change nothing about an answer."""

NO = re.compile(
    r"(?:(?:hm+|oh|well|sorry|actually|um+|ah)\W+)*"
    r"(?:(?:that|this|it)(?:'?s| is)\s+(?:not|wrong)|(?:that|this|it) (?:isn'?t|wasn'?t)"
    r"|i'?(?:ll| will) pass|i(?:'d| would) rather not|rather not|leave (?:it|them|that|this)"
    r"|forget (?:it|that|about it)|no need|never ?mind|pass|n|no|nope|nah|not(?! bad)|don'?t|do not|never|wrong|incorrect|cancel|stop|wait|hold on|later|skip"
    r"|nein|nicht|nee|später|non|pas|plus tard|todavía no|aún no|ahora no|não|nao|ainda não|tidak"
    r"|jangan|nanti|belum)\b|^[不别別]|^いいえ|^まだ",
    re.IGNORECASE,
)
"""The beginning of a refusal."""

NEGATION = re.compile(
    r"\b(?:no|not|none|nothing|never|without|don'?t|doesn'?t|didn'?t|isn'?t|can'?t|won'?t|wouldn'?t"
    r"|nicht|kein\w*|nie|ohne|ne|pas|jamais|sans|nunca|sin|não|nao|sem|tidak|jangan|tanpa)\b"
    r"|[不没別别]",
    re.IGNORECASE,
)
UNSURE = re.compile(
    r"\b(?:don'?t know|not sure|unsure|no idea|maybe|perhaps|might|possibly|depends|vielleicht"
    r"|weiß nicht|peut-être|quizás?|tal vez|talvez|não sei|forse|mungkin|entahlah)\b|也许|不知道",
    re.IGNORECASE,
)
QUALIFIER = re.compile(
    r"\b(?:but|only|just|except|unless|without|however|although|if|first|before|after|instead|aber"
    r"|nur|außer|wenn|erst|mais|seulement|sauf|pero|solo|sólo|salvo|mas|apenas|só|tapi|hanya)\b"
    r"|但是|只",
    re.IGNORECASE,
)
"""Words that limit a consent."""

QUESTION = re.compile(
    r"\s*(?:(?:and|so|but|ok(?:ay)?|hm+|well|und|et|y|e)[,\s]+)*"
    r"(?:what|how|why|when|which|who|whose|where|is|are|was|were|did|does|do (?=you|we|i|they|the|these|those|any|my|our)|has|have|am|should|would"
    r"|could|can|will|wie|warum|wieso|weshalb|wann|welche[rsmn]?|wer|wo|ist|sind|hast|habt"
    r"|kannst|könnt|quoi|comment|pourquoi|quand|quel(?:le)?s?|qui|où|est-ce|combien|qué|cómo|por qué"
    r"|cuándo|cuáles?|quiénes?|dónde|cuántos|o que|como|por que|porque|quando|qual|quais|quem|onde"
    r"|quantos|perché|quale|apa|bagaimana|mengapa|kenapa|siapa|berapa|mana)\b"
    r"|\s*(?:¿|为什么|什么|怎么|谁|哪|どう|なぜ)",
    re.IGNORECASE,
)
"""The beginning of a question."""

GREETING = re.compile(
    r"(?:hello|hi|hey|hiya|howdy|good (?:morning|afternoon|evening|day)|greetings|hallo|moin|servus"
    r"|guten (?:morgen|tag|abend)|bonjour|salut|hola|buenos días|buenas(?: tardes)?|olá|oi|bom dia"
    r"|boa tarde|ciao|buongiorno|halo|hai|selamat (?:pagi|siang|sore)|你好|您好|こんにちは)"
    r"(?:\W+(?:there|again|everyone|all|team|you|bot|wieder|de nuevo|de novo|encore))*\W*$",
    re.IGNORECASE,
)
THANKS = re.compile(
    r"(?:(?:ok(?:ay)?|great|perfect|super|cool|nice|good|no|wow|ah|oh|many|alright)\W+)*"
    r"(?:thanks?|thank you|thx|ty|cheers|much appreciated|appreciate it|danke(?:\s?schön)?|vielen dank"
    r"|merci|gracias|muchas gracias|obrigad[oa]|grazie|terima kasih|谢谢|多谢|ありがとう)"
    r"(?:\W+(?:you|a lot|so much|very much|again|for (?:the |your |this |that )?[\w ]{0,20}|sehr|beaucoup"
    r"|bien|mucho|muito|mate|man|everyone|all|now|that's all|bye))*\W*$",
    re.IGNORECASE,
)
BYE = re.compile(
    r"(?:(?:ok(?:ay)?|perfect|great|good|thanks|fine)\W+)*(?:bye(?:[ -]bye)?|goodbye|see you(?: (?:later|soon|tomorrow))?|that'?s all"
    r"(?: for (?:now|today))?|talk (?:later|soon)|good night|tschüss|au revoir|adiós|tchau|arrivederci"
    r"|sampai jumpa|再见)\W*$",
    re.IGNORECASE,
)
CHATTER = re.compile(
    r"(?:(?:how are you(?: (?:today|doing))?|how'?s it going|what'?s up|(?:very |really )?(?:nice|cool"
    r"|great|awesome|interesting|impressive|wow|lol|ha(?:ha)*\w?|not bad|hmm*|amazing|well done|good job|good work|i see"
    r"|got it|understood|aha|oh|never ?mind|forget it|sorry|oops|test|testing|ok|okay|k|alright"
    r"|you(?:'re| are) (?:awesome|great|amazing|the best|good|funny)|you there|anyone there"
    r"|are you (?:a bot|human|there|real|an ai)|wie geht'?s(?: dir)?|super|toll|gut gemacht|ça va"
    r"|qué tal|tudo bem|come va|apa kabar|你好吗))[\s,.!]*)+"
    r"(?:[,\s]+(?:today|work|job|there|man|thanks|that'?s (?:nice|great|cool|interesting)|one))*\W*$",
    re.IGNORECASE,
)
# fmt: on

NUMBERS = {
    **{str(n): n for n in range(1, 101)},
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "couple": 2,
    "zwei": 2,
    "drei": 3,
    "fünf": 5,
    "deux": 2,
    "trois": 3,
    "cinq": 5,
    "dos": 2,
    "tres": 3,
    "cinco": 5,
    "dois": 2,
    "duas": 2,
    "três": 3,
    "dua": 2,
    "tiga": 3,
    "lima": 5,
}
ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
    "erste": 1,
    "zweite": 2,
    "dritte": 3,
    "premier": 1,
    "première": 1,
    "primero": 1,
    "primera": 1,
    "primeiro": 1,
    "primeira": 1,
}
POLITE = re.compile(
    r"^(?:\s|,)*(?:(?:ok(?:ay)?|yes|yeah|sure|well|so|and|then|now|please|also|hm+|hey|actually|no"
    r"|sorry|great|perfect|good|thanks|just|kindly|oh|ja|bitte|oui|sí|sim|por favor|s'il (?:te|vous) plaît"
    r"|ya|tolong|请|(?:that )?looks good|sounds good|fine)\b[\s,.!:;-]*"
    r"|(?:can|could|would|will) (?:you|we)(?: please| also| just)*\s+|make it\s+|let'?s\s+|(?:i|we)(?:'d| would) like (?:you )?to\s+"
    r"|(?:i|we) (?:want|need) (?:you )?to\s+|you (?:can|should|may)\s+|(?:we|i) should\s+"
    r"|kannst du(?: bitte)?\s+|könnten sie(?: bitte)?\s+|peux-tu\s+|puedes\s+|podes\s+|você pode\s+)*",
    re.IGNORECASE,
)
"""Polite words before a request."""


def plain(text: str) -> str:
    """Return a text in lower case, with straight apostrophes and single spaces."""
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(text.casefold().split())


def tokens(text: str) -> list[str]:
    """Return the words of a plain text."""
    return re.findall(r"[\w'+#-]+", text)


def is_question(text: str) -> bool:
    """Return whether a text asks something, other than politely for an action."""
    text = plain(text)
    if requested(text):
        return False
    return text.rstrip(" !.)").endswith(("?", "\uff1f")) or bool(QUESTION.match(text))


def requested(text: str) -> str:
    """Return the polite question that begins a request, such as `can you please`; else nothing."""
    found = re.match(
        r"\W*(?:(?:ok|okay|yes|hi|hello|hey|and|then|now|please|actually|well|so|but|great|thanks)\W+)*(?:can|could|would|will) (?:you|we)"
        r"(?: please| now| also| just)*\s+"
        r"(?=(?:re-?run|search|refresh|enrich|run|start|show|list|drop|remove|add|reject|keep|change"
        r"|set|include|exclude|explain|tell|replace|begin|find|give|get|hide|restore|dismiss|repeat"
        r"|use|make|limit|save|discard)\b)",
        text,
        re.IGNORECASE,
    )
    return found[0] if found else ""
