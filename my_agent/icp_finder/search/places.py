"""Places: names of regions, countries and cities that the rules recognise. Pure."""

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
    "deutschland", "singapur", "singapour", "singapura", "cingapura", "malaisie", "malasia",
    "malásia", "indonesien", "indonésie", "indonésia", "thaïlande", "tailandia", "tailândia",
    "vietnã", "frankreich", "spanien", "españa", "espagne", "brasil", "japón", "japon", "japão",
    "新加坡", "马来西亚", "印尼", "泰国", "越南", "柔佛", "日本", "中国",
))
# fmt: on
_NAMES = _OTHERS | {name.casefold() for name in COUNTRIES.values()}


def is_place(text: str) -> bool:
    """Return whether a text is the name of a place that is known here."""
    return " ".join(text.casefold().split()) in _NAMES
