"""Keys of metadata and config: the ones that only the server writes, and the ones that clients set."""

TENANT_ID, USER_ID = "tenant_id", "user_id"
OWNER = (TENANT_ID, USER_ID)
"""Metadata keys that store the owner of a resource."""

CONTEXT = ("website", "rule_name", "payload")
"""Metadata keys with which a client describes the context of a thread."""

ENDINGS = ("locked_at", "archived_at", "reason")
"""Metadata keys that store when and why a thread was closed."""

RESERVED = ("status", *ENDINGS, "context_key")
"""Metadata keys of a thread that only the thread policy writes."""

AUTH_USER = "langgraph_auth_user"
"""Key of a run's `configurable` under which the platform stores the authenticated user."""

WAITING_QUESTIONS = "waiting_questions"
"""Key of a run's configuration: ids of the questions that waited when the run was created.

The thread policy writes it. A graph that asks questions with ids can then ignore an answer that was
sent before the question was asked.
"""
