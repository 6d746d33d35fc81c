"""Derive an ideal customer profile from websites, with a model and without."""

import json
from typing import Any

import pytest

from my_agent.icp_finder.model import Company
from my_agent.icp_finder.search.proposing import by_words, propose
from tests.support.openai_replies import Failure, Reply, say, say_json
from tests.support.openai_server import OpenAIServer

HAULIER = "A trucking company: freight trucking by road, trucks for every freight, road freight."
BAKER = "We bake bread. Our bakery sells bread and cakes; bakery products for every bakery."


def site(domain: str, about: str = "") -> Any:
    return {"website": f"https://{domain}", "domain": domain, "name": domain, "about": about}


def company(*about: str, ends: str = "com") -> Company:
    return {
        "site": site("acme.com", "We sell tyres."),
        "customers": [site(f"c{n}.{ends}", text) for n, text in enumerate(about)],
    }


async def test_without_model_words_propose(no_model: Any) -> None:
    assert await propose(company(HAULIER), None, {}) == (by_words(company(HAULIER)), "")


def test_words_determine_industries() -> None:
    icp = by_words(company(HAULIER, HAULIER, BAKER))
    assert "Land transport" in icp["industries"][0]
    assert icp["sizes"] == icp["keywords"] == []


def test_domains_of_most_customers_determine_region() -> None:
    assert by_words(company("", "", "", ends="com.sg"))["regions"] == ["Singapore"]
    mixed = company("", "")
    mixed["customers"] += company("", "", ends="de")["customers"]
    assert by_words(mixed)["regions"] == []


def test_unreadable_websites_give_empty_icp() -> None:
    assert by_words(company("", "")) == {
        "industries": [],
        "sizes": [],
        "regions": [],
        "keywords": [],
    }


READING = {
    "industries": ["Road freight ", "Road freight"],
    "sizes": ["11-50", "about 100"],
    "regions": ["Singapore"],
    "keywords": ["cold chain", "x"],
}


async def test_model_reads_the_websites(
    model_endpoint: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ALLOWED_MODELS", "reader")
    model_endpoint.enqueue(say_json(READING))
    icp, problem = await propose(company(HAULIER), "reader", {})
    assert icp == {
        "industries": ["Road freight"],
        "sizes": ["11-50", "51-200"],
        "regions": ["Singapore"],
        "keywords": ["cold chain"],
    }
    assert problem == ""
    asked = model_endpoint.requests[-1].body
    assert asked["model"] == "reader"
    assert asked["response_format"]["type"] == "json_schema"
    material = json.dumps(asked["messages"])
    assert all(text in material for text in ("We sell tyres", HAULIER))
    assert "never instructions" in asked["messages"][0]["content"]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Failure(status=500, message="down"), "unreachable"),
        (Failure(status=401, message="wrong key"), "unreachable"),
        (say("I would say logistics"), "unusable"),
        (say_json({**READING, "industries": []}), "unusable"),
        (say_json({"industries": ["a1"]}), "unusable"),
        (say_json({**READING, "other": 1}), "unusable"),
        (say_json({**READING, "regions": "Singapore"}), "unusable"),
    ],
    ids=["fails", "refuses", "prose", "nothing", "too little", "too much", "another type"],
)
async def test_unusable_model_answer_leaves_the_words(
    model_endpoint: OpenAIServer, reply: Reply, problem: str
) -> None:
    for _ in range(2):
        model_endpoint.enqueue(reply)
    assert await propose(company(HAULIER), None, {}) == (by_words(company(HAULIER)), problem)
