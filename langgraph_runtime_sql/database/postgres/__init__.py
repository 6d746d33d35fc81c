"""The Postgres engine: a pool of connections, shared by processes."""
