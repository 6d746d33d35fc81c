"""Contexts: the names and rules that the policy, the graphs and the server share about a thread.

This package imports no other package of the project.
"""
