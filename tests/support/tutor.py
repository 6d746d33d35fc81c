"""Shared by tests of the tutor: a server and its scripted model."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.openai_replies import JSON, Answer, say, say_json
from tests.support.openai_server import OpenAIServer, Received
from tests.support.policy import SECRET
from tests.support.processes import GRAPHS, ROOT, Running
from tests.support.served import Event, served

CONFIG: JSON = {
    "graphs": {
        "tutor": f"{ROOT}/my_agent/tutor/graph.py:graph",
        "echo": f"{GRAPHS}/echo.py:graph",
    },
    "auth": {"path": "hooks.auth:auth"},
    "sql": {"hooks": "hooks.threads:policy"},
}
# Empty values, so that the developer's environment and .env file do not set a model.
NO_MODEL = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", "OPENAI_MODEL": ""}
WRONG, RIGHT = "I has a apple.", "I have an apple."


def write_config(folder: Path) -> Path:
    """Write the config of a project with the tutor, another graph, and users."""
    path = folder / "langgraph.json"
    path.write_text(json.dumps(CONFIG))
    return path


def of_endpoint(endpoint: OpenAIServer) -> dict[str, str]:
    """Return the environment variables that configure this model."""
    return {
        "OPENAI_API_KEY": endpoint.api_key,
        "OPENAI_BASE_URL": endpoint.base_url,
        "OPENAI_MAX_RETRIES": "0",
    }


@contextmanager
def tutoring(folder: Path, **env: str) -> Iterator[Running]:
    """Serve the tutor on a database in `folder`; without a model unless `env` names one."""
    variables = {**NO_MODEL, "JWT_SECRET": SECRET, **env}
    with served(folder, write_config(folder), **variables) as server:
        yield server


def is_review(request: Received) -> bool:
    """Return whether the request asks for a correction rather than an answer."""
    return "response_format" in request.body


def found(*issues: tuple[str, str, str], explanation: str = "Mind it.") -> Answer:
    """Return a model's review; each mistake is a type, the wrong words and the right words."""
    named = [
        {"type": kind, "text": text, "replacement": new, "message": f"Not {text!r}."}
        for kind, text, new in issues
    ]
    return say_json({"issues": named, "explanation": explanation})


def confirm(request: Received) -> Answer:
    """Return a review that lists all findings of the local checks."""
    offered = json.loads(request.body["messages"][-1]["content"])["findings"]
    return found(*(("agreement", each["text"], each["replacement"]) for each in offered))


def teach(
    endpoint: OpenAIServer, *, reply: Answer | None = None, review: Answer | None = None
) -> None:
    """Script the model's answer and review; by default it confirms what it is offered."""

    def script(request: Received) -> Answer:
        if is_review(request):
            return review or confirm(request)
        return reply or say("Well said.")

    endpoint.fallback = script


def asked(endpoint: OpenAIServer, *, review: bool = False) -> list[JSON]:
    """Return the requests to the model: for answers, or for reviews."""
    return [each.body for each in endpoint.requests if is_review(each) == review]


def data(event: Event) -> Any:
    """Return the decoded data of an event."""
    return json.loads(event.data)
