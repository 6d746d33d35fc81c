"""Keys of metadata and config that say whose a resource is. Only the server writes them."""

TENANT_ID, USER_ID = "tenant_id", "user_id"
OWNER = (TENANT_ID, USER_ID)
"""Metadata keys that store the owner of a resource."""

TOKEN_ID = "token_id"
"""Metadata key of a cron that stores the token with which it was created."""

CREATED_BY = "created_by"
"""Metadata key of an assistant that marks those of the system, which every tenant sees."""

AUTH_USER = "langgraph_auth_user"
"""Key of a run's `configurable` under which the platform stores the authenticated user."""
