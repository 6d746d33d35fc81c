"""Stock middleware that is left out: whatever else the project and the API install stays."""

from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware

from tests.support.checkpoints import api_settings
from threadhold.http import middleware
from threadhold.http.json_limits import JsonLimits


def kind(module: str, name: str) -> Any:
    """Return a middleware class of this name."""
    return type(name, (), {"__module__": module, "__init__": lambda self, app: None})


def test_routes_ahead_of_the_hosts_authentication_are_left_out() -> None:
    """`POST /operator/runs/cancel` cancels all runs for whoever has a token of LangSmith."""
    own = kind("project.middleware", "OperatorRoutesMiddleware")
    stock = kind("langgraph_api.operator_routes", "OperatorRoutesMiddleware")
    app = Starlette(middleware=[Middleware(stock), Middleware(own)])
    limits = JsonLimits(1000, 100)
    with api_settings():
        middleware.install(
            app, max_body_bytes=1, body_timeout_seconds=1, limits=limits, private_network=False
        )
    kinds = [each.cls for each in app.user_middleware]
    assert own in kinds
    assert stock not in kinds
