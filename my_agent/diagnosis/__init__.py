"""The graph `diagnosis`: work an incident from evidence, and record every step as an event."""
