"""Words: the forms of common verbs and nouns, by the tables of `lemminflect`.

The verbs are listed here, because the tables also know rare verbs: "to people", "to sister".
"""

from functools import cache, lru_cache

from my_agent.tutor.rules.wordlists import words

# Verbs whose base form is rarely or never another kind of word.
PURE = words("""
    accept achieve admit agree allow appear apply arrange arrive ask attend avoid be become begin
    believe belong borrow bring build buy carry choose collect come compare complain
    complete consider contain continue create decide deliver depend describe develop die
    disappear discover discuss do earn eat enjoy enter exist expect explain fail 
    feel fill find finish follow forget forgive give go grow happen have hear hide hope
    imagine improve include introduce invite join keep know learn lend listen live lose make
    marry meet mention organise organize paint pay prefer prepare pretend produce promise provide
    receive recommend remember repeat reply save say see seem sell send shout sing sit
    speak stay steal suffer suggest swim take teach tell thank think throw
    translate try understand wake wash wear write worry 
    """)
# Verbs whose base form is often a noun or an adjective.
MIXED = words("""
    answer attack book call care change clean climb close control cost cry cut dance date dream dress
    drink end exercise fight fit fly graduate guess help hit hurry hurt increase jump kiss lack
    laugh let lie like look love matter mind miss move need offer open order park pass phone plan
    play practise practice put quit rain read relax rent rest return ride run search set show shop
    shower snow sound start stop support taste text touch train trust turn use visit wait walk want
    watch welcome wish wonder
    work leave sleep travel study smoke cook fall break drive share draw rise hate repair win catch
    """)
VERBS = PURE | MIXED
# Their past is their base form, so the tense of "she put" cannot be seen.
SAME = words("put cut let cost hit hurt quit read set shut spread bet")
# Base forms that are also adjectives or participles: "is open".
AFTER_BE = SAME | words("open clean close welcome fit live come become run rest mind")
# Nouns of a group, which take either number.
GROUPS = words("data family team staff class group band couple company government crew")
PLURALS = words("people police children men women teeth feet mice cattle wives lives")
# The tables call them nouns, which they are not in most sentences.
NOT_NOUNS = words(
    "you she they the and less more most least much one other another same all any few what who "
    "not will can may must has had was are were been very well then than but for now how way out "
    "have has do does two three last first next own following"
)
# They end like plurals.
SINGULARS = words("""
    news mathematics maths physics economics politics athletics gymnastics series species means
    states bus class glass boss address business princess address process success access dress mess
    kiss loss cross pass gas plus campus virus status bonus canvas christmas always this is was has
    its us
    """)
# Words whose forms are kept in memory: learners write any word.
_KEPT = 10_000
_PAST = {"be": "was", "have": "had", "do": "did", "learn": "learned", "dream": "dreamed"}
_PARTICIPLE = {"be": "been", "get": "got", "do": "done", "learn": "learned", "dream": "dreamed"}


@lru_cache(maxsize=_KEPT)
def _inflected(lemma: str, tag: str) -> str:
    from lemminflect import getInflection

    found = getInflection(lemma, tag)
    return str(found[0]) if found else ""


def third(lemma: str) -> str:
    """Return the form after "he": goes."""
    return {"be": "is", "have": "has"}.get(lemma) or _inflected(lemma, "VBZ")


def past(lemma: str) -> str:
    """Return the past: went."""
    return _PAST.get(lemma) or _inflected(lemma, "VBD")


def participle(lemma: str) -> str:
    """Return the participle: gone."""
    return _PARTICIPLE.get(lemma) or _inflected(lemma, "VBN")


def gerund(lemma: str) -> str:
    """Return the form in -ing."""
    return _inflected(lemma, "VBG")


@cache
def _forms(form_of: str) -> dict[str, str]:
    makers = {"third": third, "past": past, "participle": participle, "gerund": gerund}
    from lemminflect import getAllInflections

    forms = {}
    for lemma in sorted(VERBS | {"get"}):
        forms[makers[form_of](lemma)] = lemma
        tag = {"third": "VBZ", "past": "VBD", "participle": "VBN", "gerund": "VBG"}[form_of]
        for form in getAllInflections(lemma).get(tag, ()):
            forms.setdefault(form, lemma)
    return forms


def is_base(word: str) -> bool:
    """Return whether a word is the base form of a common verb."""
    return word in VERBS or word == "get"


def of_third(word: str) -> str | None:
    """Return the verb whose form after "he" this is."""
    return _forms("third").get(word)


def of_past(word: str) -> str | None:
    """Return the verb whose past this is."""
    return "be" if word in {"was", "were"} else _forms("past").get(word)


def of_participle(word: str) -> str | None:
    """Return the verb whose participle this is."""
    return _forms("participle").get(word)


def of_gerund(word: str) -> str | None:
    """Return the verb whose form in -ing this is."""
    return _forms("gerund").get(word)


@lru_cache(maxsize=_KEPT)
def _lemmas(word: str, kind: str) -> tuple[str, ...]:
    from lemminflect import getAllLemmas

    return tuple(getAllLemmas(word, upos=kind).get(kind, ()))


def is_known(word: str) -> bool:
    """Return whether the tables have a word, as any kind."""
    return any(_lemmas(word, kind) for kind in ("NOUN", "VERB", "ADJ", "ADV"))


def is_plural(word: str) -> bool:
    """Return whether a word is the plural of a noun."""
    if word in PLURALS:
        return True
    if word in SINGULARS or not word.endswith("s"):
        return False
    return any(lemma != word for lemma in _lemmas(word, "NOUN"))


def is_singular(word: str) -> bool:
    """Return whether a word is a noun in the singular."""
    if len(word) < 3 or word in GROUPS or word in NOT_NOUNS:
        return False
    return not is_plural(word) and bool(_lemmas(word, "NOUN"))


def is_adjective(word: str) -> bool:
    """Return whether a word may be an adjective."""
    return bool(_lemmas(word, "ADJ"))


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return {"person": "people"}.get(noun) or _inflected(noun, "NNS")


def comparative(adjective: str) -> str | None:
    """Return the comparative in -er, if the adjective has one."""
    from lemminflect import getAllInflections

    forms = getAllInflections(adjective, upos="ADJ").get("JJR", ())
    return str(forms[0]) if forms else None


def article(word: str) -> str:
    """Return the indefinite article before a word."""
    sounds_a = ("uni", "use", "euro", "one", "usu")
    if word.startswith(sounds_a) and not word.startswith("unin"):
        return "a"
    return "an" if word[:1] in "aeiou" or word.startswith(("hour", "honest")) else "a"
