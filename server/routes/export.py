"""Export: `GET /export/latest_scores.csv` streams the tenant's latest scores of the ICP finder."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Scope

from my_agent.user import LOCAL_TENANT
from server.operations import SCORES_EXPORT
from server.project import has_our_identity
from server.routes.forwarding import Request
from threadhold import LangGraphPlatform

GRAPH = "icp_finder"
HEADERS = {
    "content-disposition": 'attachment; filename="latest_scores.csv"',
    "cache-control": "no-store",
}


async def scores(request: Request) -> None:
    """Answer with the CSV. If the platform refuses the caller, answer with that refusal."""
    # Imported here so that the server starts without loading the ICP finder.
    from my_agent.icp_finder.export import latest_scores

    # A request to the platform checks the caller's rights. A refusal is passed on unchanged.
    probe = await request.call("POST", "/threads/count", {})
    if probe.status != 200:
        await request.relay(probe)
        return
    platform = request.platform
    auth = platform.config.sections["auth"] if isinstance(platform, LangGraphPlatform) else None
    tenant_id = None if auth is None else await tenant_of(auth, request.scope)
    if tenant_id is None:
        await request.pass_on()
        return
    await request.enter(SCORES_EXPORT)
    response = StreamingResponse(latest_scores(tenant_id), media_type="text/csv", headers=HEADERS)
    await request.respond(response, probe.headers)


async def tenant_of(auth: Mapping[str, Any], scope: Scope) -> str | None:
    """Return the tenant whose scores the caller may read.

    Args:
        auth: The section `auth` of the project's configuration.
        scope: The ASGI scope of a request that the platform has accepted.

    Returns:
        The tenant's id. None: the project has its own authentication, whose tenants are unknown.

    Raises:
        NotAuthenticated: the request's token is no longer valid.
    """
    if has_our_identity(auth):
        # Imported here: other projects do not need the package cryptography.
        from hooks.identity import authenticator

        return (await authenticator().identify(scope))["tenant_id"]
    return None if auth else LOCAL_TENANT


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {"GET /export/latest_scores.csv": scores}
