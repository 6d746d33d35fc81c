"""The error of a failed model call. It imports no client."""


class ModelCallError(RuntimeError):
    """A call of the model failed. The cause is the client's own exception.

    A RuntimeError, since the API hides from its callers the message of any class it does not know.
    """
