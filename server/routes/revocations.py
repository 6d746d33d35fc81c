"""Revocations: `GET /revocations`, `POST /revocations` and `POST /revocations/lift`, for operators.

The body names a token (`token_id`, the claim `jti`) or a user (`tenant` and `user`). A new
revocation may have `seconds` and `reason`.
"""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hooks.revocation import Target, revoke
from hooks.settings import IdentitySettings
from server.routes.forwarding import Answer, Request, read_body
from threadhold import sessions
from threadhold.gate import acting

# The route of the platform that only operators may use. `/metrics` may be open to others.
PROBE = "/audit"


class Named(BaseModel):
    """A token or a user."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tenant: str | None = Field(None, min_length=1, max_length=200)
    user: str | None = Field(None, min_length=1, max_length=200)
    token_id: str | None = Field(None, min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        _ = self.target
        return self

    @property
    def target(self) -> Target:
        """The target that the body names."""
        return Target(tenant=self.tenant, subject=self.user, token_id=self.token_id)


class Revocation(Named):
    """A new revocation."""

    seconds: float | None = Field(None, gt=0, le=315_360_000)
    reason: str | None = Field(None, max_length=1000)


async def show(request: Request) -> None:
    """Answer the revocations in force."""
    if (like := await _permitted(request)) is not None:
        await request.answer([_shown(row) for row in await sessions.listed()], like)


async def add(request: Request) -> None:
    """Revoke a token or a user, and answer the number of crons that were disabled."""
    like = await _permitted(request)
    body = None if like is None else await read_body(request, Revocation)
    if like is not None and body is not None:
        lifetime = IdentitySettings().jwt_max_lifetime_seconds
        with acting(request.accepted):
            disabled = await revoke(
                body.target, token_seconds=lifetime, seconds=body.seconds, reason=body.reason
            )
        await request.answer({"crons_disabled": disabled}, like)


async def lift(request: Request) -> None:
    """Remove a revocation. Answer 404 if there is none."""
    like = await _permitted(request)
    body = None if like is None else await read_body(request, Named)
    if like is not None and body is not None:
        with acting(request.accepted):
            found = await sessions.lift(body.target)
        content = {"lifted": True} if found else {"detail": "There is no such revocation"}
        await request.answer(content, like, status=200 if found else 404)


async def _permitted(request: Request) -> Answer | None:
    """Return the platform's answer to an operator; else send its refusal, and return None."""
    probe = await request.call("GET", PROBE)
    if probe.status == 200:
        return probe
    await request.relay(probe)
    return None


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    named = {"user" if name == "subject" else name: value for name, value in row.items()}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in named.items()
        if value is not None
    }


ROUTES = {
    "GET /revocations": show,
    "POST /revocations": add,
    "POST /revocations/lift": lift,
}
