"""Graph `chat`: answer questions about documents, and follow-up questions, with citations."""
