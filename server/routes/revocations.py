"""Revocations: `GET /revocations`, `POST /revocations` and `POST /revocations/lift`, for operators.

The body names a token (`token_id`, the claim `jti`) or a user (`tenant` and `user`). A new
revocation may have `seconds` and `reason`.
"""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from server.routes.endpoint import Caller, Json, endpoint
from threadhold import sessions
from threadhold.auth import OPERATOR, IdentitySettings, revoke
from threadhold.gate import acting
from threadhold.sessions import Target


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


@endpoint("GET /revocations", permission=OPERATOR)
async def show(caller: Caller) -> JSONResponse:
    """Answer the revocations in force."""
    return JSONResponse([_shown(row) for row in await sessions.listed()])


@endpoint("POST /revocations", permission=OPERATOR)
async def add(caller: Caller, body: Revocation) -> Json:
    """Revoke a token or a user, and answer the number of crons that were disabled."""
    lifetime = IdentitySettings().jwt_max_lifetime_seconds
    with acting(caller.user):
        disabled = await revoke(
            body.target, token_seconds=lifetime, seconds=body.seconds, reason=body.reason
        )
    return {"crons_disabled": disabled}


@endpoint("POST /revocations/lift", permission=OPERATOR)
async def lift(caller: Caller, body: Named) -> Json:
    """Remove a revocation. Answer 404 if there is none."""
    with acting(caller.user):
        if not await sessions.lift(body.target):
            raise HTTPException(404, "There is no such revocation")
    return {"lifted": True}


ROUTES = [show, add, lift]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    named = {"user" if name == "subject" else name: value for name, value in row.items()}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in named.items()
        if value is not None
    }
