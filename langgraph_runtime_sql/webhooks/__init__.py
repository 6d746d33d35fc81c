"""Webhooks: an outbox in the database, and its signed delivery."""
