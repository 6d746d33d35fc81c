"""A project with the products and a scripted model, for tests of the web app."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.openai_server import OpenAIServer
from tests.support.policy import SECRET
from tests.support.processes import (
    GRAPHS,
    ROOT,
    Running,
    environment,
    free_port,
    running,
    threadhold,
)
from tests.support.served import client
from tests.support.tutor import NO_MODEL, of_endpoint

ANSWER = " ".join(f"w{i}" for i in range(60))
REPLY = """A runtime keeps the state of each conversation in a database.

| Part | Keeps |
|---|---|
| Checkpoints | the state after each step |
| Event log | what was streamed |

1. A run begins at the newest checkpoint.
2. If the server dies, the run goes on **from there**.

```python
client.runs.create(thread_id, "chat", input=message)
```"""
# Seconds before each token.
SLOWLY = 0.05


PRODUCTS = ("chat", "tutor", "icp_finder", "research", "diagnosis")


def write_config(folder: Path, **http: object) -> Path:
    """Write a project with the products and graphs that ask, and return its file."""
    graphs = {each: f"{ROOT}/my_agent/{each}/graph.py:graph" for each in PRODUCTS}
    graphs["interrupt"] = f"{GRAPHS}/interrupt.py:graph"
    graphs["asking"] = f"{GRAPHS}/asking.py:graph"
    config = {
        "graphs": graphs,
        "auth": {"path": "hooks.auth:auth"},
        "http": http,
        "sql": {"hooks": "hooks.threads:policy", "tenant_key": "tenant_id", "state_keys": "input"},
    }
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    return path


async def store_conversation(server: Running, texts: list[str]) -> str:
    """Store messages `m0`, `m1`, ... of a person and the graph `chat` in turn, and return their thread."""
    messages = [
        {"type": ("human", "ai")[i % 2], "content": text, "id": f"m{i}"}
        for i, text in enumerate(texts)
    ]
    async with client(server) as api:
        thread = await api.thread(graph_id="chat", title="Long")
        run = await api.run(thread, "chat", {"messages": messages[:1]})
        await api.ended(thread, run)
        await api.post(f"/threads/{thread}/state", {"values": {"messages": messages}})
    return thread


def model_environment(endpoint: OpenAIServer) -> dict[str, str]:
    """Return the environment of a server that uses the scripted model."""
    return {**NO_MODEL, **of_endpoint(endpoint), "JWT_SECRET": SECRET}


@contextmanager
def web_server(
    folder: Path, config: Path, port: int | None = None, **env: str
) -> Iterator[Running]:
    """Serve a project on the database in `folder`, also if its API has a prefix.

    Args:
        port: By default a free one. A server that takes the place of another has its port.
    """
    port = port or free_port()
    command = threadhold("serve", "--config", config, "--port", str(port))
    command += ["--database-url", f"sqlite:///{folder / 'data.db'}"]
    with running(command, port, folder, environment(**env), ready="/health") as started:
        yield started
