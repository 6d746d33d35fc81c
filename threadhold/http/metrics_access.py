"""Access to the metrics: who reads `/metrics`, whose figures cover all tenants."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

# Shorter tokens can be guessed.
MIN_TOKEN_CHARACTERS = 16
CLOSED = (
    "The metrics are closed: they show figures of all tenants. METRICS_TOKEN (`metrics_token`) opens "
    "them to a scraper, `metrics_permission` to users, PUBLIC_METRICS (`public_metrics`) to everyone"
)


@dataclass(frozen=True)
class MetricsAccess:
    """Decide who reads the metrics. By default nobody does.

    Attributes:
        permission: Permission of users that may read them.
        token: Token of a scraper that may read them, in `Authorization: Bearer ...`.
        public: Everyone may read them.
    """

    permission: str | None = None
    token: str | None = field(default=None, repr=False)
    public: bool = False

    def allows(self, authorization: str | None) -> bool:
        """Return whether a request may read the metrics without being a user.

        Args:
            authorization: The request's `Authorization` header.
        """
        if self.public:
            return True
        scheme, _, given = (authorization or "").partition(" ")
        return (
            self.token is not None
            and scheme.lower() == "bearer"
            # Headers are decoded as Latin 1.
            and secrets.compare_digest(given.strip().encode("latin-1"), self.token.encode())
        )


class MetricsGuard:
    """Answer the metrics to those that may read them, and refuse other requests.

    Args:
        app: The app that answers the metrics.
        access: The callers that may read them.
        protect: Returns an app behind the project's authentication and a permission.
    """

    def __init__(
        self, app: ASGIApp, access: MetricsAccess, protect: Callable[[ASGIApp, str], ASGIApp]
    ) -> None:
        self._app = app
        self._access = access
        self._otherwise: ASGIApp
        if access.permission is not None:
            self._otherwise = protect(app, access.permission)
        elif access.token is not None:
            detail = {"detail": "The metrics need the token METRICS_TOKEN (`metrics_token`)"}
            self._otherwise = JSONResponse(detail, 401, {"WWW-Authenticate": "Bearer"})
        else:
            self._otherwise = JSONResponse({"detail": CLOSED}, 404)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = self._access.allows(Headers(scope=scope).get("authorization"))
        await (self._app if allowed else self._otherwise)(scope, receive, send)
