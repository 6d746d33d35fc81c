"""Start: what a server needs whose project names this authentication."""

from collections.abc import Mapping
from typing import Any

from langgraph_runtime_sql.errors import RuntimeSqlError
from threadhold.auth.settings import OPERATOR, IdentitySettings
from threadhold.extras import require

PATH = "threadhold.auth:auth"
"""The `path` in the section `auth` of a project."""


class AuthenticationMissing(RuntimeSqlError):
    """The project has no authentication, which the environment requires."""


def is_named(section: Mapping[str, Any]) -> bool:
    """Return whether a project's section `auth` names this authentication."""
    return section.get("path") == PATH


def platform_options(settings: IdentitySettings) -> dict[str, Any]:
    """Return the arguments of `LangGraphPlatform` that this authentication needs.

    Args:
        settings: The key and the claims with which tokens are verified.

    Raises:
        AuthenticationMissing: outside `local_dev`, there is no key, audience or issuer; or the key
            cannot be read.
        MissingExtra: the extra `jwt` is not installed.
    """
    require("jwt", "`threadhold.auth`")
    # Imported late, because it imports cryptography, which other projects do not need.
    from threadhold.auth.identity import Authenticator

    try:
        Authenticator(settings)
    except ValueError as error:
        raise AuthenticationMissing(str(error)) from error
    return {
        # Metrics and the audit log cover all tenants.
        "metrics_permission": OPERATOR,
        "audit_permission": OPERATOR,
        "env": settings.environment(),
    }
