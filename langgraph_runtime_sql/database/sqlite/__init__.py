"""The SQLite engine: one process, one writer."""
