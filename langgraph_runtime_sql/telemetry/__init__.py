"""Telemetry: metrics of runs and of the database, tokens of models, and traces."""
