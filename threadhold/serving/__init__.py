"""Serving: one process or several under uvicorn, workers without a port, logs and shutdown."""
