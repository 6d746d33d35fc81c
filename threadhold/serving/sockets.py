"""Sockets: let a WebSocket whose application asks for it outlive the signal to stop.

uvicorn closes all WebSockets at SIGTERM.
"""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from threadhold.http.stream_ends import OUTLIVE


class Socket(WebSocketsSansIOProtocol):
    """A WebSocket that stays open during a stop if its application closes it."""

    _outlives = False

    async def run_asgi(self) -> None:
        scope: Any = self.scope
        scope.setdefault("extensions", {})[OUTLIVE] = {"outlive": self._outlive}
        await super().run_asgi()

    def shutdown(self) -> None:
        """Close the WebSocket, unless its application does so before the grace period is over."""
        if not (self._outlives and self.handshake_complete):
            super().shutdown()

    def _outlive(self) -> None:
        self._outlives = True
