"""Heard: what a person has said in one run, checked by code. Nodes do it; nothing else decides."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from my_agent.icp_finder import values
from my_agent.web import sites


class Order(TypedDict):
    """Something to do or to answer."""

    name: str  # a command of `commands.COMMANDS`, or `ask`, `dispute`, `talk`, `candidate`
    keys: list[str] | None  # the candidates that it is about; None: no candidate was named, or all
    words: str  # a reason, a filter, or what a question is about
    sure: bool  # whether the person's own words ask for it; otherwise a button does
    names: NotRequired[list[str]]  # names of the candidates, to ask about them


class Heard(TypedDict):
    """What a message says."""

    website: str | None  # the website that it calls the company's own
    customers: list[str]  # websites of customers that it adds
    without: list[str]  # domains of customers that it takes out
    icp: dict[str, list[str]]  # the changed fields of the profile, whole; an empty list means any
    orders: list[Order]  # what it asks for and costs nothing
    wish: Order | None  # what it asks for and costs, deletes or opens something
    stray: str | None  # a website whose role is unknown
    enough: bool  # whether it says that there are no more customers
    notes: list[str]  # sentences about what could not be applied
    unheard: list[str]  # words that no act explains
    by: Literal["press", "code", "model"]  # who read it


def nothing() -> Heard:
    """Return what a message says that says nothing."""
    return {
        "website": None,
        "customers": [],
        "without": [],
        "icp": {},
        "orders": [],
        "wish": None,
        "stray": None,
        "enough": False,
        "notes": [],
        "unheard": [],
        "by": "code",
    }


def order(name: str, keys: list[str] | None = None, words: str = "", *, sure: bool = True) -> Order:
    """Build an order; the arguments are its fields."""
    return {"name": name, "keys": keys, "words": words, "sure": sure}


def has_data(heard: Heard) -> bool:
    """Return whether a message gives or changes data of the company."""
    named = heard["website"] or heard["customers"] or heard["without"]
    return bool(named or heard["icp"] or heard["enough"])


def combined(first: Heard, then: Heard) -> Heard:
    """Combine the data of two messages; the second one takes precedence."""
    return {
        **then,
        "website": then["website"] or first["website"],
        "customers": list(dict.fromkeys([*first["customers"], *then["customers"]])),
        "without": list(dict.fromkeys([*first["without"], *then["without"]])),
        "icp": {**first["icp"], **then["icp"]},
        "enough": first["enough"] or then["enough"],
    }


def from_form(given: Mapping[str, Any]) -> Heard:
    """Read a structured reply with `website`, `customers`, and `icp` or the ICP's fields themselves."""
    icp = given.get("icp", given)
    fields = {
        field: values.clean(field, texts)
        for field in values.FIELDS
        if isinstance(icp, Mapping) and (texts := _texts(icp.get(field))) is not None
    }
    own = sites.websites(" ".join(_texts(given.get("website")) or ()))
    customers = sites.websites("\n".join(_texts(given.get("customers")) or ()))
    return {
        **nothing(),
        "website": own[0] if own else None,
        "customers": customers,
        "icp": fields,
        "by": "press",
    }


def _texts(value: Any) -> list[str] | None:
    """Return a text or a list of texts as a list; None for anything else."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    return [text[:2_000] for text in texts[:200]]
