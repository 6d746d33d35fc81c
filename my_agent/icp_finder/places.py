"""Places: names of regions, countries and cities that the rules recognise. Pure."""

from rapidfuzz import fuzz, process

# fmt: off
COUNTRIES = {
    "sg": "Singapore", "my": "Malaysia", "id": "Indonesia", "th": "Thailand", "vn": "Vietnam",
    "ph": "Philippines", "hk": "Hong Kong", "tw": "Taiwan", "cn": "China", "jp": "Japan",
    "kr": "South Korea", "au": "Australia", "nz": "New Zealand", "uk": "United Kingdom",
    "ie": "Ireland", "de": "Germany", "at": "Austria", "ch": "Switzerland", "fr": "France",
    "be": "Belgium", "nl": "Netherlands", "es": "Spain", "pt": "Portugal", "it": "Italy",
    "dk": "Denmark", "se": "Sweden", "no": "Norway", "fi": "Finland", "pl": "Poland",
    "cz": "Czechia", "ca": "Canada", "mx": "Mexico", "br": "Brazil", "us": "United States",
    "za": "South Africa", "ae": "United Arab Emirates", "in": "India",
}
"""Countries by top-level domain, without domains that are used as words (.io, .co)."""

_OTHERS = frozenset((
    "asean", "southeast asia", "south east asia", "south-east asia", "asia", "asia pacific",
    "asia-pacific", "apac", "europe", "the eu", "eu", "north america", "south america",
    "latin america", "middle east", "africa", "oceania", "worldwide", "usa", "us", "uk", "uae",
    "america", "england", "scotland", "wales", "korea", "brunei", "cambodia", "laos", "myanmar",
    "johor", "johor bahru", "penang", "selangor", "kuala lumpur", "malacca", "melaka", "perak",
    "sabah", "sarawak", "kedah", "batam", "jakarta", "surabaya", "bandung", "bali", "medan",
    "bangkok", "chiang mai", "hanoi", "ho chi minh city", "saigon", "manila", "cebu", "tokyo",
    "osaka", "seoul", "shanghai", "beijing", "shenzhen", "guangzhou", "taipei", "mumbai", "delhi",
    "bangalore", "sydney", "melbourne", "perth", "auckland", "london", "berlin", "munich", "hamburg",
    "frankfurt", "paris", "lyon", "madrid", "barcelona", "lisbon", "rome", "milan", "amsterdam",
    "rotterdam", "brussels", "zurich", "vienna", "dubai", "new york", "california", "texas",
    "jurong", "tuas", "woodlands", "changi",
    # Other languages.
    "柔佛",
))
_ALIASES = {
    "Singapore": "singapur singapour singapura cingapura 新加坡", "Malaysia": "malaisie malasia malásia 马来西亚",
    "Indonesia": "indonesien indonésie indonésia 印尼", "Thailand": "thaïlande tailandia tailândia 泰国",
    "Germany": "deutschland alemanha allemagne alemania", "Austria": "österreich áustria autriche",
    "Switzerland": "schweiz suíça suisse suiza", "France": "frankreich frança francia",
    "Spain": "spanien espanha españa espagne", "Portugal": "", "Brazil": "brasil brasilien brésil",
    "Italy": "italien itália italie italia", "Netherlands": "niederlande holland holanda pays-bas",
    "Belgium": "belgien bélgica belgique", "Poland": "polen polónia polônia pologne", "Ireland": "irland irlanda",
    "United Kingdom": "großbritannien", "United States": "usa", "Japan": "japón japon japão 日本",
    "China": "中国", "Vietnam": "vietnã 越南", "Denmark": "dänemark dinamarca", "Sweden": "schweden suécia",
    "Norway": "norwegen noruega", "Australia": "australien austrália", "India": "indien índia",
}
"""Countries by their English names, with their names in other languages."""
# fmt: on
_ENGLISH = {other: name for name, others in _ALIASES.items() for other in others.split()}
_COUNTRIES = {name.casefold(): name for name in COUNTRIES.values()}
_NAMES = _OTHERS | _ENGLISH.keys() | {name.casefold() for name in COUNTRIES.values()}


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
