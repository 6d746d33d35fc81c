"""The tutor's answers when no model is configured."""

from langchain_core.messages import BaseMessage

from my_agent.offline import OfflineChatModel


class OfflineTutor(OfflineChatModel):
    """Tell the learner that only the grammar check works."""

    def answer(self, messages: list[BaseMessage]) -> str:
        """Return the same text for every conversation."""
        return (
            "I am offline: no language model is configured, so I cannot talk with you. What you "
            "write is still checked: if there are mistakes, a correction is shown next to your "
            "message. Say “practise” to correct your own sentences again. Set OPENAI_API_KEY, or OPENAI_BASE_URL for any OpenAI-compatible endpoint, "
            "and write again."
        )
