"""Administration: what an operator does with a database."""
