"""A scripted model for research: by default it plans, quotes the price, and reports it."""

from collections.abc import Callable

from tests.support.openai_replies import Answer, Reply, say_json
from tests.support.openai_server import OpenAIServer, Received

PRICE = "Skarra costs 20 euros a month for each user."


def worker(request: Received) -> str:
    """Return the worker that sends a request to the model."""
    system = str(request.body["messages"][0]["content"])
    starts = {"You plan": "planner", "You read": "analyzer", "You choose": "reporter"}
    return next(name for start, name in starts.items() if system.startswith(start))


def teach(endpoint: OpenAIServer, **replies: Reply | Callable[[Received], Reply]) -> None:
    """Script the replies to `planner`, `analyzer` and `reporter`."""
    helpful = {"planner": planned(), "analyzer": analyzed(), "reporter": chosen((1, PRICE))}

    def script(request: Received) -> Reply:
        reply = {**helpful, **replies}[worker(request)]
        return reply(request) if callable(reply) else reply

    endpoint.fallback = script


def planned(*queries: str) -> Answer:
    return say_json({"queries": list(queries or ("Skarra prices", "Skarra competitors"))})


def statement(quote: str, text: str | None = None, page: int = 0, kind: str = "facts") -> object:
    return {"page": page, "quote": quote, "text": text or quote, "kind": kind}


def analyzed(*statements: object) -> Callable[[Received], Answer]:
    """Return an analysis; a statement of page 0 is about the page that has its quote."""

    def reply(request: Received) -> Answer:
        pages = str(request.body["messages"][1]["content"]).split("\nPage ")
        said = []
        for each in statements or (statement(PRICE),):
            assert isinstance(each, dict)
            place = [n for n, page in enumerate(pages) if each["quote"] in page and n > 0]
            said.append({**each, "page": each["page"] or (place or [1])[0]})
        return say_json({"statements": said})

    return reply


def chosen(*statements: tuple[int, str]) -> Answer:
    return say_json({"statements": [{"number": n, "text": text} for n, text in statements]})


def calls(endpoint: OpenAIServer) -> list[str]:
    return [worker(each) for each in endpoint.requests]
