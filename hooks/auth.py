"""Authentication and authorization: the library's, which also reserves the keys of the thread policy.

`langgraph.json` selects this module with `"auth": {"path": "hooks.auth:auth"}`.
"""

from my_agent.keys import RESERVED
from threadhold.auth import tenant_auth

auth = tenant_auth(reserved=RESERVED)
