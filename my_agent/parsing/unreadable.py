"""The error of a parser."""


class Unreadable(RuntimeError):
    """Raised when a text or file cannot be read. The message is the reason: "it is encrypted".

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """
