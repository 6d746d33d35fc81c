"""The Postgres engine: a pool of connections, used by several processes."""
