"""Export: `GET /export/latest_scores.csv`, the tenant's latest scores of the ICP finder, streamed."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Scope

from my_agent.user import LOCAL_TENANT
from server.project import has_our_identity
from server.routes.forwarding import Request
from threadhold import LangGraphPlatform

GRAPH = "icp_finder"
HEADERS = {
    "content-disposition": 'attachment; filename="latest_scores.csv"',
    "cache-control": "no-store",
}


async def scores(request: Request) -> None:
    """Answer with the CSV, or as the platform does who may not ask."""
    # Here, so that a server which nobody asks for it starts without the ICP finder.
    from my_agent.icp_finder.export import latest_scores

    # Whoever the platform refuses is refused in its words; everybody else gets this far.
    probe = await request.ask("POST", "/threads/count", {})
    if probe.status != 200:
        await request.relay(probe)
        return
    platform = request.platform
    auth = platform.config.sections["auth"] if isinstance(platform, LangGraphPlatform) else None
    tenant_id = None if auth is None else await tenant_of(auth, request.scope)
    if tenant_id is None:
        await request.pass_on()
        return
    response = StreamingResponse(latest_scores(tenant_id), media_type="text/csv", headers=HEADERS)
    await request.respond(response, probe.headers)


async def tenant_of(auth: Mapping[str, Any], scope: Scope) -> str | None:
    """Whose scores the caller may have; None where the project's own auth knows tenants otherwise.

    Args:
        auth: the section of the project's configuration.
        scope: of the request, which the platform has let in.

    Raises:
        NotAuthenticated: it would not let it in now.
    """
    if has_our_identity(auth):
        # Here, because it brings all of cryptography, which other projects never need.
        from hooks.identity import authenticator

        return (await authenticator().identify(scope))["tenant_id"]
    return None if auth else LOCAL_TENANT


ROUTES: dict[str, Callable[[Request], Awaitable[None]]] = {"GET /export/latest_scores.csv": scores}
