"""Words of agreement, refusal and doubt that code knows, in the languages of the product. Pure data.

They are evidence, not a grammar: a model says what a message does, and these words say whether the quote
can mean it. In other languages the person presses a button.
"""

import re


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# fmt: off
YES = word_set(
    "y yes yeah yep yup sure ok okay k right correct confirm confirmed agree agreed approved absolutely"
    " definitely certainly perfect great fine good cool alright exactly go proceed"
    " j ja jawohl jo klar gerne genau passt einverstanden natürlich logisch los stimmt richtig korrekt super"
    " s sim claro certo certinho pode podes vale perfeito exato exatamente beleza blz bora manda força confirmo"
    " isso concordo combinado positivo"
    " oui ouais volontiers sí si dale adelante correcto sì certo va ya boleh setuju"
    " 是 是的 好 好的 对 可以 行 👍 ✅ 👌 🆗"
)
"""Words that agree."""

WEAK = word_set("ok okay k great fine good cool alright perfect super right perfeito beleza blz certo klar")
"""Words of `YES` that also just take note of something."""

NO = word_set(
    "n no nope nah not never don't cancel stop wait later skip pass wrong incorrect"
    " nein nö nee ne nicht nie falsch abbrechen später warte lieber"
    " não nao nunca negativo errado cancela cancelar depois espera agora"
    " non pas nada nunca tidak jangan 不 不要 👎 ❌"
)
"""Words that refuse."""

YES_PHRASES = re.compile(
    r"\bno (?:problem|worries|objections?)\b|\bgo (?:ahead|on|for it)\b|\b(?:please )?do (?:it|so|that)\b|\bplease do\b"
    r"|\b(?:looks?|sounds?) (?:all )?(?:good|right|fine|great|perfect)\b|\bof course\b|\bthat'?s (?:it|right|fine|correct)\b"
    r"|\blet'?s (?:go|do it)\b|\bworks for me\b|\bwhy not\b|\bnot bad\b|\b(?:fire away|make it so)\b"
    r"|\bkein(?:e)? (?:problem|einwände)\b|\bleg los\b|\b(?:das )?(?:klingt|hört sich|sieht) (?:sehr |echt |alles )?(?:gut|super|prima|richtig)(?: an| aus)?\b|\bparece (?:muito )?(?:bem|bom|ótimo|certo)\b|\bauf jeden fall\b|\bmach (?:das|mal|es)\b|\bnur zu\b|\bpasst so\b"
    r"|\bpode ser\b|\bisso mesmo\b|\bsem problemas?\b|\bcom certeza\b|\bmanda ver\b|\bestá (?:bem|bom|certo)\b|\btá (?:bom|certo)\b"
    r"|\bvai em frente\b|\bde acordo\b|\bd'accord\b|\bbien sûr\b|\bde acuerdo\b|\bva bene\b|没问题",
    re.IGNORECASE,
)
"""Phrases that agree, also those with a word of refusal in them."""

NEGATION = re.compile(
    r"\b(?:no|not|none|nothing|never|neither|nor|without|cannot|\w+n't|dont|doesnt|didnt|isnt|arent|cant|wont|wouldnt"
    r"|no longer|any ?more|nicht|nichts|nix|kein\w*|nie|niemals|ohne|weder|nein"
    r"|não|nao|nem|nunca|jamais|sem|nenhum\w*|nada|ne|pas|sans|sin|ni|tidak|jangan|tanpa)\b|[不没別别]",
    re.IGNORECASE,
)
EXCEPTION = re.compile(
    r"\b(?:except|excluding|apart from|aside from|other than|but not|all but|save for|minus|leave out|leaving out|(?:any|every)\w+ but"
    r"|außer|ausser|ausgenommen|bis auf|abgesehen von|ohne"
    r"|exceto|excepto|menos|salvo|fora|tirando|sem|mas não)\b",
    re.IGNORECASE,
)
REMOVAL = re.compile(
    r"\b(?:drop|remov\w+|delet\w+|exclud\w+|leav\w+ out|get rid of|lose|bin|kick|scrap|strike|cut|skip|avoid|ditch|stop\w*"
    r"|quit|take out|out|forget|hate|raus\w*|draußen|streich\w*|lösch\w*|lass\w* weg|weg|weglassen|entfern\w*|schließ\w*|schmeiß\w*|verzicht\w*"
    r"|tir[ae]\w*|remov\w*|retir\w*|exclu\w*|elimin\w*|apag\w*|cort\w*|deix\w* de|larg\w*|descart\w*)\b",
    re.IGNORECASE,
)
"""Words that take something away, besides those of negation and exception."""
DOUBT = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|depends?|unsure|not sure|don'?t know|dunno|no idea|would|could|should|if|unless|until|till"
    r"|once|when|after|before|first(?! (?:one|two|three|four|five|six|seven|eight|nine|ten|couple|of|page|\d))|later|tomorrow|next (?:week|month|year|time)|last time|wait|hold on|think about|i wonder|imagine"
    r"|said|says|told|asked|someone|my (?:boss|manager|colleague)"
    r"|vielleicht|eventuell|möglicherweise|kommt drauf an|weiß nicht|wenn|falls|sobald|bevor|nachdem|erst|später|morgen|nächste\w*"
    r"|letzte\w* mal|wäre|würde|könnte|sollte|hätte|warte|sagt\w*|angenommen|mein\w* chef\w*"
    r"|talvez|se calhar|quem sabe|depende|não sei|quando|caso|antes|depois|primeiro|amanhã|mais tarde|próxim\w+ (?:semana|mês|ano)"
    r"|última vez|seria|poderia|devia|deveria|espera|disse\w*|imagin\w+|o (?:meu )?chefe)\b",
    re.IGNORECASE,
)
"""Words of doubt, condition, report and another time: with them, agreement is no order."""
POLITE = re.compile(
    r"^\W*(?:(?:ok|okay|hi|hey|hello|and|so|please|now|then|und|also|bitte|dann|e|então|por favor|olá|oi)\W+)*"
    r"(?:can|could|would|will) (?:you|u|we)(?: please| now| just| also)?\b|^\W*(?:kannst|könntest|würdest) du\b"
    r"|^\W*(?:können|könnten|würden) sie\b|^\W*(?:pode[sm]?|podia|poderia[sm]?|consegues?|dá para)\b",
    re.IGNORECASE,
)
"""The beginning of a question that politely asks for an action."""
BECAUSE = "because|since|weil|denn|porque|pois|já que"
"""Words that introduce a reason, as a part of a pattern."""
_LEAD = re.compile(
    r"^[ ,]*(?:(?:please|bitte|por favor|ok|okay|and|now|then|also|hey|hi)[ ,]+)+", re.IGNORECASE
)
_FILLERS = word_set(
    "a an the and or then also too so well oh ah um uh hm hmm just please pls thanks thank you very much now ok okay yes yeah"
    " it is are be this that these those them they all one ones of to in on at for from with as my our your me us i we do"
    " again quick quickly hi hello hey dear sir btw lol haha actually only really mate guys rest though but have has"
    " und oder dann auch noch mal bitte danke sehr jetzt ja also so es ist sind das die der den dem ein eine ich wir mir uns"
    " du sie euch aber doch für von mit in im zu alles alle na gut hallo hi mal eben doch nur aber sonst"
    " e ou então também por favor obrigado obrigada muito agora sim é são isso esse essa o a os as um uma de da do das dos em"
    " no na nos nas para pra com eu nós me nos você vocês te já só mas olá oi aí aqui lá pois bem mas porém"
)
_GREETINGS = {
    "greeting": word_set("hello hi hey hiya howdy good morning afternoon evening day greetings there still hallo moin servus guten morgen"
                     " tag abend grüß gott bonjour hola olá oi bom dia boa tarde noite ciao"),
    "thanks": word_set("thanks thank you thx ty cheers so very much a lot many danke dir dankeschön vielen dank sehr schön obrigado"
                   " obrigada muito brigado valeu merci gracias grazie"),
    "bye": word_set("bye goodbye see you later soon tomorrow ciao tschüss tschüs bis dann bald später wiedersehen auf tchau até logo"
                " amanhã adeus"),
}
ORDINALS = {
    **dict(zip(["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], range(1, 11), strict=True)),
    **dict(zip(["erste", "zweite", "dritte", "vierte", "funfte", "sechste", "siebte", "achte", "neunte", "zehnte"], range(1, 11), strict=True)),
    **dict(zip(["ersten", "zweiten", "dritten", "vierten", "funften", "sechsten", "siebten", "achten", "neunten", "zehnten"], range(1, 11), strict=True)),
    **dict(zip(["primeira", "segunda", "terceira", "quarta", "quinta", "sexta", "setima", "oitava", "nona", "decima"], range(1, 11), strict=True)),
    **dict(zip(["primeiro", "segundo", "terceiro", "quarto", "quinto", "sexto", "setimo", "oitavo", "nono", "decimo"], range(1, 11), strict=True)),
}
"""Ordinal numbers, without accents."""
# fmt: on


def negates(text: str, language: str = "") -> bool:
    """Return whether a text contains a word of negation. In Portuguese, `no` means `in the`.

    Args:
        text: the text.
        language: code of its language; empty if it is not known.
    """
    if language.casefold().startswith("pt"):
        text = re.sub(r"\bno\b", " ", text, flags=re.IGNORECASE)
    return NEGATION.search(text) is not None


def plain(text: str) -> str:
    """Return a text in lower case, with straight apostrophes and single spaces."""
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(text.casefold().split())


def tokens(text: str) -> list[str]:
    """Return the words, numbers and signs of agreement in a text."""
    return re.findall(r"[\w'+-]+|[👍✅👌🆗👎❌]", plain(text))


def without_politeness(text: str) -> str:
    """Return a text without the words with which it politely begins, such as `could you please`."""
    polite = POLITE.match(text)
    return _LEAD.sub("", text[polite.end() :] if polite else text)


def is_filler(text: str) -> bool:
    """Return whether a text says nothing on its own."""
    return all(token in _FILLERS for token in tokens(text))


def agrees(text: str) -> bool:
    """Return whether every word of a text agrees or says nothing, and one agrees."""
    said = tokens(YES_PHRASES.sub(" yes ", plain(text)))
    if "?" in text or not said or (_takes_note(said) and not YES_PHRASES.search(plain(text))):
        return False
    return all(each in YES or each in _FILLERS for each in said) and any(
        each in YES for each in said
    )


def refuses(text: str) -> bool:
    """Return whether every word of a text refuses or says nothing, and one refuses."""
    said = tokens(text)
    if "?" in text or YES_PHRASES.search(plain(text)):
        return False
    known = all(
        each in NO or each in _FILLERS or each in ("need", "nötig", "obrigado") for each in said
    )
    return (
        known
        and any(each in NO for each in said)
        and not set(said) & (YES - {"ok", "okay"} - _FILLERS)
    )


def has_agreement(quote: str) -> bool:
    """Return whether a quote contains a word or a phrase that agrees."""
    return YES_PHRASES.search(plain(quote)) is not None or not YES.isdisjoint(tokens(quote))


def small_talk(text: str) -> str | None:
    """Return `greeting`, `thanks` or `bye` if a text is nothing else."""
    said = tokens(text)
    for name, known in _GREETINGS.items():
        if (
            said
            and all(each in known or each in _FILLERS for each in said)
            and not known.isdisjoint(said)
        ):
            return name
    return None


def _takes_note(said: list[str]) -> bool:
    thanked = {"thanks", "thank", "danke", "obrigado", "obrigada"} & set(said)
    return bool(thanked) and not set(said) & (YES - WEAK)
