"""Audit log: an append-only, hash-chained record of changes, refusals and policy decisions."""
