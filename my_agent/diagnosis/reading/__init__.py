"""Reading: logs, metrics and traces as people paste them."""
