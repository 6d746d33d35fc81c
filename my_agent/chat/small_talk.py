"""Small talk: recognize messages that greet, thank, stop or complain, and ask for nothing."""

import re

from my_agent.chat.documents.words import WORD, fold, listed

# Folded. A message of only these words is no question.
_POLITE = listed(
    """
    hi hello hey thanks thank thx ty cheers bye goodbye ok okay great perfect cool nice awesome
    good morning afternoon evening night wonderful excellent please welcome sorry
    oi ola obrigado obrigada obg valeu tchau bom boa dia tarde noite otimo otima perfeito legal
    beleza certo entendi agradeco grato grata desculpe desculpa
    gracias hola adios danke merci ciao
    stop nevermind never mind forget esquece esqueca deixa chega
    """
)
# Words that may stand beside the polite ones.
_FILLERS = listed(
    """
    you so very much a lot for your the help that this is was it all there again and i got
    about la
    muito muita mesmo pela pelo sua seu ajuda por tudo isso foi e eu a o de nada
    """
)
# Folded. Complaints that do not say what is wanted instead.
_COMPLAINT = re.compile(
    r"(?:no|nope|nao|wrong|errado|incorrect|(?:that ?i?s|thats|its|it is|this is)? ?(?:wrong|incorrect|not (?:it|right|true))"
    r"|(?:that ?i?s|thats)? ?not what i (?:meant|asked|wanted)(?: for)?|you (?:misunderstood|did not understand)(?: me)?"
    r"|(?:nao (?:e|era|foi) (?:isso|isto))(?: que (?:eu )?(?:queria|perguntei|pedi|quis dizer))?|(?:isso )?esta errado"
    r"|nao entendeste|nao entendeu|percebeste mal)"
)
# Folded. The documents do not know what an assistant can do.
_ABOUT_ITSELF = re.compile(
    r"help(?: me)?|who are you|what (?:are|can) you(?: do)?|how (?:does this|do you) work|what is this"
    r"|ajuda(?: me)?|quem (?:es tu|es|e voce)|o que (?:sabes|podes|pode|voce pode|consegues) fazer"
    r"|como (?:e que )?(?:isto|isso) funciona|o que e isto"
)
_LONGEST = 80


def is_small_talk(text: str) -> bool:
    """Return whether a message only greets, thanks, stops or complains, so that nothing is searched.

    A question mark makes it a question, except about the assistant itself.
    """
    if len(text) > _LONGEST:
        return False
    words = WORD.findall(fold(text.replace("'", "").replace("\u2019", "")))
    if _COMPLAINT.fullmatch(" ".join(words)) or _ABOUT_ITSELF.fullmatch(" ".join(words)):
        return True
    if not words or "?" in text:
        return not words and bool(text.strip())
    return any(word in _POLITE for word in words) and all(
        word in _POLITE or word in _FILLERS for word in words
    )
