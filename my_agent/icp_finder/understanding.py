"""Understanding: from what websites say to an ideal customer profile, with a model or without."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field

from my_agent.icp_finder import prompts, ssic
from my_agent.icp_finder.heard import clean, values
from my_agent.icp_finder.model import Company, Icp, Site
from my_agent.models import chat_model
from my_agent.offline import OfflineChatModel

INDUSTRIES = 3
# Words of an industry in a list; a longer piece is of a sentence.
LISTED_WORDS = 4
# Characters of each website that a model reads.
EXCERPT = 2000
_STAFF = re.compile(
    r"(\d[\d,.]*\s*(?:-|\u2013|to)\s*\d[\d,.]*|\d[\d,.]*\s*\+?)\s*(?:staff|employees|people|persons)\b",
    re.IGNORECASE,
)
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
"""Countries by the end of their companies' domains; those used as words (.io, .co) are left out."""
# fmt: on


class ModelUnusableError(RuntimeError):
    """The model gave no usable answer; the cause is why."""


class Reading(BaseModel):
    """What a model makes of websites."""

    model_config = ConfigDict(extra="forbid")

    industries: list[str] = Field(min_length=1, max_length=20)
    sizes: list[str] = Field(max_length=20)
    regions: list[str] = Field(max_length=20)
    keywords: list[str] = Field(max_length=40)


async def by_model(company: Company, model: str | None, words: str = "") -> Icp | None:
    """The ICP that the configured model sees in the websites; None where none is configured.

    Args:
        company: with its customers, read as far as possible.
        model: name of the model; None: the configured one.
        words: what the user says about it.

    Raises:
        ModelUnusableError: it was not reached, or its answer is not what was asked for.
    """
    chosen = await asyncio.to_thread(chat_model, model)
    if isinstance(chosen, OfflineChatModel):
        return None
    reading = await _ask(chosen, _material(company, words))
    icp: Icp = {
        "industries": clean("industries", reading.industries),
        "sizes": clean("sizes", reading.sizes),
        "regions": clean("regions", reading.regions),
        "keywords": clean("keywords", reading.keywords),
    }
    return icp


async def _ask(model: BaseChatModel, material: str) -> Reading:
    from langchain_core.exceptions import OutputParserException
    from openai import OpenAIError

    from my_agent.endpoint import ModelCallError

    asked = model.with_structured_output(Reading, method="json_schema")
    # Not streamed to the user: it is not an answer in the conversation.
    messages = [SystemMessage(prompts.MODEL), HumanMessage(material)]
    try:
        found = await asked.ainvoke(messages, {"tags": ["nostream"]})
    except (ModelCallError, OpenAIError, OutputParserException, ValueError) as error:
        raise ModelUnusableError(str(error)) from error
    if not isinstance(found, Reading):
        raise ModelUnusableError("the model refused to answer")
    return found


def by_words(company: Company) -> Icp:
    """The ICP that can be told without a model: from words of industries, and from domains."""
    sites = company["customers"]
    industries = Counter(
        title for site in sites for title in ssic.industries_in(f"{site['name']}. {site['about']}")
    )
    regions = Counter(filter(None, map(_country, sites)))
    return {
        "industries": _common(industries, INDUSTRIES),
        "sizes": [],
        # Of one customer alone a country would be a guess.
        "regions": [name for name in _common(regions, 1) if 2 * regions[name] > len(sites)],
        "keywords": [],
    }


def by_answer(words: str) -> dict[str, list[str]]:
    """The fields of an ICP in an answer to the question for industries. Pure.

    A list is taken as it is. Of sentences it is what they are about: known industries, and the
    countries and numbers of staff that they name.
    """
    listed = values("industries", words)
    if all(len(piece.split()) <= LISTED_WORDS for piece in listed):
        return {"industries": listed}
    found = {
        "industries": ssic.industries_in(words, limit=INDUSTRIES) or listed,
        "sizes": clean("sizes", [each[1] for each in _STAFF.finditer(words)]),
        "regions": [
            name for name in COUNTRIES.values() if re.search(rf"\b{name}\b", words, re.IGNORECASE)
        ],
    }
    return {field: given for field, given in found.items() if given}


def _common(counted: Counter[str], limit: int) -> list[str]:
    """The most frequent, of equals the one that came first."""
    return [name for name, _ in counted.most_common(limit)]


def _country(site: Site) -> str | None:
    return COUNTRIES.get(site["domain"].rpartition(".")[2])


def _material(company: Company, words: str) -> str:
    own = _described("The company", [company["site"]])
    theirs = _described("A customer of it", company["customers"])
    said = [f"What the company says about its ideal customers:\n{words}"] if words else []
    return "\n\n".join([*own, *theirs, *said])


def _described(role: str, sites: Iterable[Site]) -> list[str]:
    return [
        f"{role}: {site['domain']} ({site['name']})\n{site['about'][:EXCERPT] or 'Not readable.'}"
        for site in sites
    ]
