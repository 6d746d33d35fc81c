"""Proposing: derive an ideal customer profile from websites, with a model or without."""

import asyncio
from collections import Counter
from collections.abc import Iterable

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict, Field

from my_agent import asking
from my_agent.companies import ssic
from my_agent.icp_finder import prompts, values
from my_agent.icp_finder.model import Company, Icp, Site
from my_agent.understanding.places import COUNTRIES

INDUSTRIES = 3
# Characters of each website that the model reads.
EXCERPT = 2000


class Proposal(BaseModel):
    """The model's answer about the websites."""

    model_config = ConfigDict(extra="forbid")

    industries: list[str] = Field(min_length=1, max_length=20)
    sizes: list[str] = Field(max_length=20)
    regions: list[str] = Field(max_length=20)
    keywords: list[str] = Field(max_length=40)


async def propose(company: Company, model: str | None, config: RunnableConfig) -> tuple[Icp, str]:
    """Propose the ICP of the websites: by the configured model, or else by their words.

    Args:
        company: the company and its customers, read as far as possible.
        model: name of the model; None: the configured one.
        config: the config of the run.

    Returns:
        The ICP, and why the model gave none; empty if it did, or none is configured.

    Raises:
        ModelNotAllowedError: the settings do not allow the model.
    """
    messages = [SystemMessage(prompts.MODEL), HumanMessage(_material(company))]
    found = await asking.structured(Proposal, messages, model=model, config=config)
    if isinstance(found, asking.Asked):
        fields = found.value.model_dump()
        cleaned = {name: values.clean(name, given) for name, given in fields.items()}
        return values.merged(None, cleaned), ""
    return await asyncio.to_thread(by_words, company), found.kind if found else ""


def by_words(company: Company) -> Icp:
    """Derive the ICP without a model: from names of industries and from domains. Pure."""
    sites = company["customers"]
    industries = Counter(
        title for site in sites for title in ssic.industries_in(f"{site['name']}. {site['about']}")
    )
    regions = Counter(
        filter(None, (COUNTRIES.get(site["domain"].rpartition(".")[2]) for site in sites))
    )
    return {
        # Ties are in order of first occurrence.
        "industries": [name for name, _ in industries.most_common(INDUSTRIES)],
        "sizes": [],
        # The country must be that of more than half of the customers.
        "regions": [name for name, held in regions.most_common(1) if 2 * held > len(sites)],
        "keywords": [],
    }


def _material(company: Company) -> str:
    own = _described("The company", [company["site"]])
    theirs = _described("A customer of it", company["customers"])
    return "\n\n".join([*own, *theirs])


def _described(role: str, sites: Iterable[Site]) -> list[str]:
    return [
        f"{role}: {site['domain']} ({site['name']})\n{site['about'][:EXCERPT] or 'Not readable.'}"
        for site in sites
    ]
