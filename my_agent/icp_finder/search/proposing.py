"""Understanding: derive an ideal customer profile from websites, with a model or without."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field

from my_agent.icp_finder import prompts
from my_agent.icp_finder.model import Company, Icp, Site
from my_agent.icp_finder.reading.message_parser import clean, parse_values
from my_agent.icp_finder.search import ssic
from my_agent.icp_finder.search.places import COUNTRIES
from my_agent.models import requested_model
from my_agent.offline import OfflineChatModel

INDUSTRIES = 3
# Maximum number of words of a list item; a longer item is a sentence.
LISTED_WORDS = 4
# Characters of each website that the model reads.
EXCERPT = 2000
_STAFF = re.compile(
    r"(?<![\d,.])[,.]*+(\d[\d,.]*+\s*+(?:(?:-|\u2013|to)\s*+\d[\d,.]*+|\+?))\s*+"
    r"(?:staff|employees|people|persons)\b",
    re.IGNORECASE,
)


class ModelUnusableError(RuntimeError):
    """The model gave no usable answer. The cause is the reason."""


class Reading(BaseModel):
    """The model's answer about the websites."""

    model_config = ConfigDict(extra="forbid")

    industries: list[str] = Field(min_length=1, max_length=20)
    sizes: list[str] = Field(max_length=20)
    regions: list[str] = Field(max_length=20)
    keywords: list[str] = Field(max_length=40)


async def by_model(company: Company, model: str | None, words: str = "") -> Icp | None:
    """Ask the configured model for the ICP of the websites; None if no model is configured.

    Args:
        company: the company and its customers, read as far as possible.
        model: name of the model; None: the configured one.
        words: the user's own description of the ICP.

    Raises:
        ModelUnusableError: the model was unreachable, or its answer does not match the schema.
        ModelNotAllowedError: the settings do not allow the model.
    """
    chosen = await asyncio.to_thread(requested_model, model)
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
    # The tag keeps the answer out of the stream: it is not part of the conversation.
    messages = [SystemMessage(prompts.MODEL), HumanMessage(material)]
    try:
        found = await asked.ainvoke(messages, {"tags": ["nostream"]})
    except (ModelCallError, OpenAIError, OutputParserException, ValueError) as error:
        raise ModelUnusableError(str(error)) from error
    if not isinstance(found, Reading):
        raise ModelUnusableError("the model refused to answer")
    return found


def by_words(company: Company) -> Icp:
    """Derive the ICP without a model: from names of industries and from domains."""
    sites = company["customers"]
    industries = Counter(
        title for site in sites for title in ssic.industries_in(f"{site['name']}. {site['about']}")
    )
    regions = Counter(filter(None, map(_country, sites)))
    return {
        "industries": _common(industries, INDUSTRIES),
        "sizes": [],
        # The country must be that of more than half of the customers.
        "regions": [name for name in _common(regions, 1) if 2 * regions[name] > len(sites)],
        "keywords": [],
    }


def by_answer(words: str) -> dict[str, list[str]]:
    """Derive ICP fields from the answer to the question for industries. Pure.

    A list is used as it is. From sentences, known industries, countries and numbers of staff are
    extracted.
    """
    listed = parse_values("industries", words)
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
    """Return the most frequent items; ties are in order of first occurrence."""
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
