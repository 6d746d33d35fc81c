"""The canary: Threadhold with the newest stable, candidate and development releases of what it stands on."""
