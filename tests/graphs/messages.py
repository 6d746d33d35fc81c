"""A graph that says what it is asked to: calls of tools, content blocks, or Markdown that is hostile."""

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

# One pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
MARKDOWN = """# Title

```python
def f(): return 1
```

Euler: $e^{i\\pi} = -1$, for $5 or $10. A claim[^1]. [Up](#title)

```mermaid
flowchart LR
  A --> B
```

| Harbour | Swimming | Breweries | Population | Elevation | Ferry |
|---|---|---|---|---|---|
| Mount Desert | allowed | brewery | thousands | mountainous | twice |

<details>
<summary>More</summary>

**inside**

</details>

<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">

![spy](https://spy.example/a.png) [bad](javascript:window.hacked=1)

[^1]: The note.
"""


def _tools() -> list[AnyMessage]:
    calls = [
        {"name": "search_web", "args": {"query": "lisbon", "near": {"km": 5}}, "id": "c1"},
        {"name": "book", "args": {}, "id": "c2"},
    ]
    return [
        AIMessage("I look.", name="scout", tool_calls=calls),
        ToolMessage('{"cities": ["Lisbon"]}', tool_call_id="c1"),
        ToolMessage("It is full.", tool_call_id="c2", status="error"),
        AIMessage("hidden words", id="do-not-render-1"),
        AIMessage("Done.", name="scout"),
    ]


def _blocks() -> list[AnyMessage]:
    content: list[str | dict[str, object]] = [
        {"type": "reasoning", "reasoning": "I think first."},
        {"type": "text", "text": "A picture:"},
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
        {"type": "image", "url": "https://spy.example/b.png"},
        {
            "type": "file",
            "base64": "YQ==",
            "mime_type": "text/plain",
            "extras": {"filename": "a.txt"},
        },
        {"type": "hologram", "depth": 3},
    ]
    return [AIMessage(content)]


def _say(state: MessagesState) -> dict[str, list[AnyMessage]]:
    asked = str(state["messages"][-1].text)
    said = {"tools": _tools, "blocks": _blocks}.get(asked, lambda: [AIMessage(MARKDOWN)])
    return {"messages": said()}


_builder = StateGraph(MessagesState)
_builder.add_node("say", _say)
_builder.add_edge(START, "say")
_builder.add_edge("say", END)
graph = _builder.compile()
