"""Keys: the names in metadata and config that only the server writes, and those that clients give."""

TENANT_ID, USER_ID = "tenant_id", "user_id"
OWNER = (TENANT_ID, USER_ID)
"""Metadata keys that say whose something is."""

CONTEXT = ("website", "rule_name", "payload")
"""Metadata keys that say what a thread is about, as clients give it."""

ENDINGS = ("locked_at", "archived_at", "reason")
"""Metadata keys that say when and why a thread was closed."""

RESERVED = ("status", *ENDINGS, "context_key")
"""Metadata keys of a thread that only the thread policy writes."""

POLICY_KEYS = (*OWNER, *RESERVED)
"""Metadata keys that no client may write."""

ASSISTANT_KEYS = (*POLICY_KEYS, "created_by")
"""The same of an assistant; `created_by` tells the system's, which every tenant sees, from others."""

AUTH_USER = "langgraph_auth_user"
"""Key of a run's `configurable`: the authenticated user, whom the platform writes there."""
