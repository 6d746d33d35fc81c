"""Documents of the graph `chat`: reading, ingestion, and search for passages."""
