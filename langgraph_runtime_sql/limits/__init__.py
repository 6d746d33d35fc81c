"""Limits: which runs may start, and how much a tenant, a user and an assistant may create."""
