"""Places: names of regions, countries and cities that the rules recognise. Pure.

`reference/places.csv` has countries with their top-level domain and their names in other languages,
then other places in lower case. Domains that are used as words (.io, .co) are left out.
"""

from rapidfuzz import fuzz, process

from my_agent.reference import table

_PLACES = table("my_agent.understanding", "places.csv")
COUNTRIES = {each["domain"]: each["name"] for each in _PLACES if each["domain"]}
"""Countries by top-level domain."""
_ENGLISH = {
    other: each["name"] for each in _PLACES for other in each["aliases"].split("|") if other
}
_COUNTRIES = {name.casefold(): name for name in COUNTRIES.values()}
_NAMES = _ENGLISH.keys() | {each["name"].casefold() for each in _PLACES}


def in_english(text: str) -> str:
    """Return the English name of a country that is written in another language or with a typing error.

    Other texts, such as regions and cities, stay.
    """
    plain = " ".join(text.casefold().split())
    if plain in _ENGLISH:
        return _ENGLISH[plain]
    if plain in _NAMES or len(plain) < 6:
        return text
    found = process.extractOne(plain, list(_COUNTRIES), scorer=fuzz.ratio, score_cutoff=90)
    return _COUNTRIES[found[0]] if found else text


def is_place(text: str) -> bool:
    """Return whether a text is the name of a place that is known here."""
    return " ".join(text.casefold().split()) in _NAMES
