"""The gate: what every read and every write of a client passes."""
