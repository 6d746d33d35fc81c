"""Request checks: check the body of each request again, after the API's own check.

Each handler of the API reads its body through one request class, which a subclass replaces here.
"""

from typing import Any

from threadhold.http import json_limits, request_body, validation


def checked(stock: Any) -> Any:
    """Return the request class that refuses bodies and adds missing defaults by `http.validation`."""

    class CheckedRequest(stock):
        async def json(self, schema: Any = None) -> Any:
            first = not hasattr(self, "_json")
            body = await super().json(schema)
            if first:
                method, path = self.method, self.scope.get("route", "")
                await json_limits.off_loop(
                    len(self._body), lambda: validation.check(method, path, body)
                )
                validation.complete(method, path, body)
            return body

        async def body(self) -> Any:
            first = not hasattr(self, "_body")
            if first:
                # Read and kept with the request already, by what stands around the route.
                self._body = await request_body.read(self.scope, self.receive)
            body = self._body
            if first and self.method == "POST":
                path = self.scope.get("route", "")
                sent = body
                self._body = body = await json_limits.off_loop(
                    len(sent), lambda: validation.checked_message(path, sent)
                )
                validation.check_path(path, self.path_params)
            return body

    return CheckedRequest
