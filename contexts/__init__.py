"""Contexts: what the policy, the graphs and the server agree on about a thread. Imports nothing of ours."""
