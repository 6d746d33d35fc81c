"""Sentences of learners of English, with their mistakes marked."""
