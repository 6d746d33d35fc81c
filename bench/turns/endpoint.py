"""Endpoint: a scripted model that answers the call that reads a message, and refuses all others."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.turns import Act
from bench.turns.offline import environment
from tests.support.openai_replies import Failure, Reply, call, say_json
from tests.support.openai_server import OpenAIServer, Received

# The instructions and the schema of the call that reads a message have this word.
_READS = re.compile(r"\bacts\b")
_REFUSED = Failure(status=400, message="This model reads messages only")


class Endpoint:
    """The scripted model.

    Attributes:
        asked: how often it was asked to read a message.
    """

    def __init__(self, server: OpenAIServer) -> None:
        self._server = server
        self.asked = 0

    @contextmanager
    def finding(self, language: str, acts: Sequence[Act]) -> Iterator[None]:
        """Be configured, and find these acts in any message."""
        reading = {"language": language, "acts": list(acts)}

        def reply(received: Received) -> Reply:
            if not _READS.search(json.dumps(received.body)):
                return _REFUSED
            self.asked += 1
            tools = [each["function"]["name"] for each in received.body.get("tools") or []]
            return call(tools[0], **reading) if tools else say_json(reading)

        self._server.reset()
        self._server.fallback = reply
        with environment(
            OPENAI_BASE_URL=self._server.base_url, OPENAI_API_KEY=self._server.api_key
        ):
            yield
