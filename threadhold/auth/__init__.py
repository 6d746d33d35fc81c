"""Authentication: tenants and users from JWT, of whom each sees only its own resources.

`langgraph.json` selects it with `"auth": {"path": "threadhold.auth:auth"}`. The extra `jwt` brings
what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from threadhold.extras import require

if TYPE_CHECKING:
    from threadhold.auth.identity import Authenticator, authenticator
    from threadhold.auth.revocation import revoke
    from threadhold.auth.settings import OPERATOR, IdentitySettings
    from threadhold.auth.start import platform_options
    from threadhold.auth.tenants import auth, tenant_auth

__all__ = [
    "OPERATOR",
    "Authenticator",
    "IdentitySettings",
    "auth",
    "authenticator",
    "platform_options",
    "revoke",
    "tenant_auth",
]

_PLACES = {
    "OPERATOR": "settings",
    "Authenticator": "identity",
    "IdentitySettings": "settings",
    "auth": "tenants",
    "authenticator": "identity",
    "platform_options": "start",
    "revoke": "revocation",
    "tenant_auth": "tenants",
}
# What verifies tokens is an extra.
_WITH_EXTRA = {"identity", "tenants"}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: a server that verifies no tokens needs no package for that."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = _PLACES[name]
    if place in _WITH_EXTRA:
        require("jwt", "`threadhold.auth`")
    return getattr(import_module(f"threadhold.auth.{place}"), name)
