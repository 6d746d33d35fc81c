"""Graph `research`: a supervisor and five workers. Each claim of the report has its quotes."""
