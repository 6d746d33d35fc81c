"""Small talk: recognize messages that greet or thank and ask for nothing."""

from my_agent.chat.documents.words import WORD, fold, listed

# Folded. A message of only these words is no question.
_POLITE = listed(
    """
    hi hello hey thanks thank thx ty cheers bye goodbye ok okay great perfect cool nice awesome
    good morning afternoon evening night wonderful excellent please welcome sorry
    oi ola obrigado obrigada obg valeu tchau bom boa dia tarde noite otimo otima perfeito legal
    beleza certo entendi agradeco grato grata desculpe desculpa
    gracias hola adios danke merci ciao
    """
)
# Words that may stand beside the polite ones.
_FILLERS = listed(
    """
    you so very much a lot for your the help that this is was it all there again and i got
    muito muita mesmo pela pelo sua seu ajuda por tudo isso foi e eu a o de nada
    """
)
_LONGEST = 80


def is_small_talk(text: str) -> bool:
    """Return whether a message only greets or thanks. A question mark makes it a question."""
    if len(text) > _LONGEST or "?" in text:
        return False
    words = WORD.findall(fold(text))
    return any(word in _POLITE for word in words) and all(
        word in _POLITE or word in _FILLERS for word in words
    )
