"""Images: builds them step by step with buildah, and serves with them (`make image`)."""
