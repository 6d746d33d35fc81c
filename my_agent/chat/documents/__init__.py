"""What the chat answers from: documents, and how passages of them are found."""
