"""Enrichment: read more about candidates, at once or in a background job."""
