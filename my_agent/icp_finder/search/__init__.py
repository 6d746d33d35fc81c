"""Search and scoring: find companies, and rate how well they fit."""
