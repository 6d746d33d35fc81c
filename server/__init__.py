"""The example application: settings, host app, product routes and command line."""
