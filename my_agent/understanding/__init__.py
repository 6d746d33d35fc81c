"""Understanding: what a person says in one message, as acts that quote their words.

A model or a small reader finds the acts; code checks the quotes, resolves names and numbers, and decides
what may be done. The graphs share it.
"""
