// npm install react @langchain/langgraph-sdk @langchain/core
// The server lets this page in with CORS_ALLOW_ORIGINS=http://localhost:5173 (its own address).
import { useStream } from "@langchain/langgraph-sdk/react";
import type { Message } from "@langchain/langgraph-sdk";

export function Chat() {
  const stream = useStream<{ messages: Message[] }>({
    apiUrl: "http://127.0.0.1:8123",
    assistantId: "agent",
    messagesKey: "messages",
    // With API_TOKEN on the server:
    // defaultHeaders: { Authorization: `Bearer ${token}` },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem("text") as HTMLInputElement;
        stream.submit({ messages: [{ type: "human", content: field.value }] });
        field.value = "";
      }}
    >
      {stream.messages.map((message) => (
        <p key={message.id}>{message.content as string}</p>
      ))}
      <input name="text" />
      <button disabled={stream.isLoading}>Send</button>
    </form>
  );
}
