"""Tenancy: the tenant of each row, and the rows that a transaction may see."""
