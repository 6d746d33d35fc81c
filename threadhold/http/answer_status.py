"""Answer status: what an application has sent so far."""

from starlette.types import Message, Send


class AnswerStatus:
    """A `send` that notes the status of the answer.

    Attributes:
        status: The HTTP status, 101 for an accepted WebSocket, or 0 before an answer.
    """

    def __init__(self, send: Send) -> None:
        self.status = 0
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "websocket.accept":
            self.status = 101
        await self._send(message)
