"""The Starlette host: settings, app, logs and the command line."""
