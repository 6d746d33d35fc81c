"""One scenario on every server: stock ``langgraph dev``, and ours on each database, answer alike.

A scenario is an async function that uses one server through the SDK or plain HTTP
and returns what it saw. It is played on all of them at once; ids, times and
addresses are normalised; what remains must be equal, but for the deliberate
differences listed, with reasons, in ``differences.py``.

- A new scenario: a function under ``@scenario()`` in ``scenarios/<noun>.py``. It owns
  its threads and assistants, scopes searches by a mark of its own, and is ``alone``
  if it cannot.
- One of them: ``pytest tests/conformance -k streams.custom``.
- The harness itself: ``CONFORMANCE_PEER=stock pytest tests/conformance`` plays stock
  against stock, so whatever fails there is the scenario's or the normaliser's fault.
"""
