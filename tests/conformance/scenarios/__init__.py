"""The scenarios, a module a noun; importing this package registers all of them."""

from . import assistants, threads  # noqa: F401
