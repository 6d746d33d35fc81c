"""Play each scenario on stock ``langgraph dev`` and on our server with each database.

A scenario is an async function that uses one server through the SDK or plain HTTP and
returns what it saw. It runs on all servers at once. Ids, times and addresses are
normalised. The rest must be equal, except for the intended differences that
``differences.py`` lists with their reasons.

- To add a scenario, write a function under ``@scenario()`` in ``scenarios/<noun>.py``. It owns
  its threads and assistants and limits its searches to its own mark. If it cannot, it is
  ``alone``.
- To run one scenario: ``pytest tests/conformance -k streams.custom``.
- To check the harness: ``CONFORMANCE_PEER=stock pytest tests/conformance`` compares stock with
  stock, so that every failure is a fault of a scenario or of the normaliser.
"""
