"""Unreadable: the error of a parser that cannot read its input."""


class Unreadable(RuntimeError):
    """Raised when a text or file cannot be read. The message is the reason: "it is encrypted".

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """
