"""Hooks that record their calls and refuse operations on threads with `refuse` in the metadata.

The hooks patch a thread with `patches` in its metadata, and record the commit of the patch.
"""

import json
import os
from functools import partial
from typing import Any

from langgraph_runtime_sql.hooks import Reject, Transaction


class Recording:
    """Append a JSON line for each call to the file of `HOOKS_RECORD`."""

    def before_thread_create(self, tx: Transaction, thread: dict[str, Any]) -> None:
        thread["metadata"]["stamped"] = True
        self._record("before_thread_create", tx, thread)
        if rival := thread["metadata"].get("rival"):
            for other in tx.find_threads({"rival": rival}):
                tx.patch_thread(other["thread_id"], {"closed": True})
        self._refuse("create", thread)

    def before_thread_update(
        self, tx: Transaction, thread: dict[str, Any], metadata: dict[str, Any]
    ) -> None:
        self._record("before_thread_update", tx, thread)
        if "stamped" in metadata:
            raise Reject(422, {"error": "reserved", "key": "stamped"})

    def before_run_create(
        self, tx: Transaction, thread: dict[str, Any], run: dict[str, Any]
    ) -> None:
        self._record("before_run_create", tx, thread)
        self._patch("run", tx, thread)
        self._refuse("run", thread)

    def before_state_update(self, tx: Transaction, thread: dict[str, Any]) -> None:
        self._record("before_state_update", tx, thread)
        self._patch("state", tx, thread)
        self._refuse("state", thread)

    def after_run_end(
        self, tx: Transaction, thread: dict[str, Any] | None, run: dict[str, Any], status: str
    ) -> None:
        self._record(f"after_run_end:{status}", tx, thread)

    def before_thread_search(self, tx: Transaction, search: dict[str, Any]) -> None:
        if "hidden" not in search["metadata"]:
            search["without"]["hidden"] = True

    @staticmethod
    def _refuse(what: str, thread: dict[str, Any]) -> None:
        if thread["metadata"].get("refuse") == what:
            raise Reject(409, {"error": "refused", "what": what, "id": str(thread["thread_id"])})

    def _patch(self, what: str, tx: Transaction, thread: dict[str, Any]) -> None:
        if thread["metadata"].get("patches"):
            times = thread["metadata"].get("patched", 0) + 1
            tx.patch_thread(thread["thread_id"], {"patched": times})
            line = {"committed": what, "thread": str(thread["thread_id"])}
            tx.after_commit(partial(self._write, line))

    @classmethod
    def _record(cls, name: str, tx: Transaction, thread: dict[str, Any] | None) -> None:
        line = {"hook": name, "thread": str(thread["thread_id"]) if thread else None}
        cls._write({**line, "caller": tx.caller.identity})

    @staticmethod
    def _write(line: dict[str, Any]) -> None:
        with open(os.environ["HOOKS_RECORD"], "a") as file:
            file.write(json.dumps(line) + "\n")


policy = Recording()
