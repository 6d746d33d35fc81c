"""Records: what is stored of a tenant."""
