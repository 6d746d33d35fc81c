"""A made corpus of records in English and Portuguese, and five kinds of questions about it.

All names, numbers and codes come from one seed. Each record is a document of a few sentences whose
words are the same as those of all others, except for names and numbers: the hard case for a search
by meaning.
"""

import random
from dataclasses import dataclass
from pathlib import Path

SEED = 20_240
RECORDS = 300
KINDS = ("literal", "paraphrase", "comparison", "identifier", "no answer")

_SYLLABLES = [
    "ba",
    "ca",
    "do",
    "fe",
    "ga",
    "hi",
    "jo",
    "ka",
    "lu",
    "me",
    "no",
    "pa",
    "qui",
    "ro",
    "sa",
    "ti",
    "vu",
    "za",
    "bre",
    "cle",
    "dra",
    "fro",
    "gri",
    "pla",
]
_ENDS = ["n", "r", "l", "s", "nd", "rk", "lm", "th", "ss", "x"]
_MATERIALS = {
    "en": ("granite", "timber", "steel", "brick", "concrete"),
    "pt": ("granito", "madeira", "aço", "tijolo", "concreto"),
}
_TEXTS = {
    "en": (
        "# Bridge of {name}\n\n## Register\n\nThe bridge of {name} has the inventory number {code}. "
        "It was built in {year} by the engineer {person}.\n\n## Structure\n\nThe bridge of {name} is "
        "made of {material} and has a span of {span} metres. Lorries above {load} tonnes may not "
        "cross it.\n"
    ),
    "pt": (
        "# Ponte de {name}\n\n## Registro\n\nA ponte de {name} tem o número de inventário {code}. "
        "Foi construída em {year} pelo engenheiro {person}.\n\n## Estrutura\n\nA ponte de {name} é "
        "feita de {material} e tem um vão de {span} metros. Caminhões acima de {load} toneladas não "
        "podem atravessar.\n"
    ),
}
# Form of a question, and the section with the answer: 0 is the register, 1 the structure.
_LITERAL = {
    "en": (
        ("What span has the bridge of {name}?", 1),
        ("Which engineer built the bridge of {name}?", 0),
        ("What inventory number has the bridge of {name}?", 0),
    ),
    "pt": (
        ("Que vão tem a ponte de {name}?", 1),
        ("Que engenheiro construiu a ponte de {name}?", 0),
        ("Qual é o número de inventário da ponte de {name}?", 0),
    ),
}
_PARAPHRASE = {
    "en": (
        ("From one side to the other, how long is the {name} crossing?", 1),
        ("What was used to make the {name} crossing?", 1),
        ("Who designed {name}, and when was it finished?", 0),
        ("How heavy may a truck be at {name}?", 1),
    ),
    "pt": (
        ("Qual o comprimento da travessia {name} de um lado ao outro?", 1),
        ("Qual o peso máximo de um veículo em {name}?", 1),
        ("Quem projetou {name}, e quando ficou pronta?", 0),
        ("Que material usaram na travessia {name}?", 1),
    ),
}
_COMPARISON = {
    "en": ("Which has the longer span, the bridge of {name} or the bridge of {other}?", 1),
    "pt": ("Qual foi construída antes, a ponte de {name} ou a ponte de {other}?", 0),
}
_IDENTIFIER = {
    "en": ("Which bridge has inventory number {code}?", "What is {code}?"),
    "pt": ("Que ponte tem o número de inventário {code}?", "O que é {code}?"),
}
_UNKNOWN = {
    "en": (
        "What span has the bridge of {name}?",
        "Which bridge has inventory number {code}?",
        "How heavy may a truck be at {name}?",
    ),
    "pt": (
        "Que vão tem a ponte de {name}?",
        "Que ponte tem o número de inventário {code}?",
        "Qual o peso máximo de um veículo em {name}?",
    ),
}
_OTHER_TOPICS = (
    "Who won the football world cup?",
    "How do I bake sourdough bread?",
    "What is the capital of Mongolia?",
    "Which vaccines does a kitten need?",
    "How does photosynthesis work?",
    "What is the boiling point of ethanol?",
    "Write a poem about the sea",
    "What is our parental leave policy?",
    "Quem escreveu Dom Casmurro?",
    "Como se faz pão de queijo?",
    "Qual é a capital da Mongólia?",
    "Que vacinas um gatinho precisa?",
    "Como funciona a fotossíntese?",
    "Qual é a cotação do dólar hoje?",
    "Qual é a política de férias da empresa?",
    "Como troco a senha do meu e-mail?",
)


@dataclass(frozen=True)
class Asked:
    """A question of one kind.

    Attributes:
        kind: one of `KINDS`.
        question: the text.
        answers: pairs of words; a passage with all words of a pair is an answer, and each pair
            needs one. Empty: the corpus has no answer.
    """

    kind: str
    question: str
    answers: tuple[tuple[str, str], ...]


def write(folder: Path, *, seed: int = SEED, records: int = RECORDS) -> list[Asked]:
    """Write the documents and return the questions, each kind in both languages.

    Args:
        folder: where the documents are written.
        seed: of all random numbers.
        records: number of documents, half of them in each language.
    """
    rng = random.Random(seed)
    names = _names(rng, 3 * records)
    codes = rng.sample(range(1000, 10_000), 2 * records)
    made = []
    for place in range(records):
        language = ("en", "pt")[place % 2]
        record = {
            "language": language,
            "name": names[place],
            "code": f"{rng.choice('ABCDEFGH')}{codes[place]}",
            "year": str(rng.randrange(1500, 2000)),
            "person": f"{names[records + place]} {rng.choice(names[2 * records :])}",
            "material": rng.choice(_MATERIALS[language]),
            "span": str(rng.randrange(10, 900)),
            "load": str(rng.randrange(2, 60)),
        }
        made.append(record)
        (folder / f"{place:04}.md").write_text(_TEXTS[language].format(**record), encoding="utf-8")
    asked: list[Asked] = []
    for place, record in enumerate(made):
        asked += _about(rng, record, made[(place + 2) % records])
    for place in range(records // 3):
        language = ("en", "pt")[place % 2]
        absent = {"name": names[2 * records + place].title() + "q", "code": f"K{codes[-1 - place]}"}
        form = rng.choice(_UNKNOWN[language])
        asked.append(Asked("no answer", form.format(**absent), ()))
    asked += [Asked("no answer", each, ()) for each in _OTHER_TOPICS]
    return asked


def _about(rng: random.Random, record: dict[str, str], other: dict[str, str]) -> list[Asked]:
    language, name = record["language"], record["name"]
    words = ("inventory number", "metres") if language == "en" else ("inventário", "metros")
    found = []
    for kind, forms in (("literal", _LITERAL), ("paraphrase", _PARAPHRASE)):
        form, part = rng.choice(forms[language])
        found.append(Asked(kind, form.format(**record), ((name, words[part]),)))
    form, part = _COMPARISON[language]
    pair = ((name, words[part]), (other["name"], words[part]))
    found.append(Asked("comparison", form.format(name=name, other=other["name"]), pair))
    form = rng.choice(_IDENTIFIER[language])
    found.append(Asked("identifier", form.format(**record), ((name, record["code"]),)))
    return found


def _names(rng: random.Random, count: int) -> list[str]:
    """Return different names of three syllables."""
    found: dict[str, None] = {}
    while len(found) < count:
        word = "".join(rng.choice(_SYLLABLES) for _ in range(3)) + rng.choice(_ENDS)
        found[word.capitalize()] = None
    return list(found)
