"""Commands: what a person can ask for, and the words that are evidence of it. Data.

The words decide nothing on their own. A model names the command, and its quote must contain one of the
words before something is stored or spent; the small reader takes a message that is one of them with
numbers or names. Add a word for a language here, and a line to `bench/turns`.
"""

import re
from collections.abc import Iterable

from my_agent.understanding.words import word_set

# fmt: off
COMMANDS: dict[str, str] = {
    "reject": "reject|refuse|drop|remove|delete|exclude|bin|ditch|dismiss|discard|hide|scrap|strike|kick(?: out)?|throw out|get rid of|cross out|take out|out"
              "|lehn\\w*|ablehnen|verw[ie]rf\\w*|streich\\w*|entfern\\w*|lösch\\w*|raus\\w*|weg\\w*|schmeiß\\w*|aussortier\\w*"
              "|rejeit\\w*|tir[ae]\\w*|remov\\w*|exclu\\w*|elimin\\w*|descart\\w*|apag\\w*|cort\\w*|fora|risc\\w*",
    "keep": "keep|retain|save|hold on to|star|behalt\\w*|merk\\w*|mant\\w*|guard\\w*|fic\\w* com",
    "like": "(?:(?:show|find|give)(?: me)? )?more(?: of them)? like|more such as|similar to|like|love|mehr (?:wie|von|so)|ähnlich(?:e)? wie|gefällt|gefallen|mag"
            "|mais (?:como|parecid\\w* com|do tipo)|parecid\\w* com|gost\\w*|curt\\w*|ador\\w*",
    "restore": "restore|un-?reject|un-?hide|(?:bring|put|get|give|want)(?=.{1,80}\\bback\\b)|back|bring back|put back|re-?add|take back|wiederherstell\\w*|hol\\w*|zurück\\w*|restaur\\w*|recuper\\w*|traz\\w*|volta\\w*|devolv\\w*|repõe|repor",
    "enrich": "enrich\\w*|reicher\\w*|bereicher\\w*|anreicher\\w*|anzureichern|enriqu\\w*",
    "search": "(?:re-?run|refresh|repeat|redo)(?: (?:the )?(?:discovery|search))?|search(?: again)?|find(?: me)?(?: (?:more|new))?|look again|new search|run discovery"
              "|such\\w*(?: noch ?mal| erneut| neu)?|neu(?:e)? such\\w*|procur\\w*(?: de novo| outra vez)?|busc\\w*(?: de novo)?|pesquis\\w*|refaz\\w*",
    "stop": "stop|halt|abort|cancel|pause|stopp?\\w*|abbrechen|brich\\w*|anhalten|aufhören|hör auf|par[ae]\\w*|cancel\\w*|interromp\\w*",
    "undo": "undo|take (?:that|it) back|revert|go back(?: one step)?|one step back|back one step|rückgängig\\w*|zurücknehmen|nimm\\w*|zurück"
            "|desfaz\\w*|desfazer|volt\\w* atrás|anul\\w*|reverte\\w*",
    "start_over": "start over|start again|start fresh|wipe\\w*|forget everything|clear everything|from scratch|begin again|reset|von vorne?|neu anfangen|neustart|alles löschen|lösch\\w*|vergiss alles|recomeç\\w*|apag\\w*|limp\\w*|do zero|começar de novo|reinici\\w*",
    "new_session": "new session|new chat|neue sitzung|neuer chat|nova sessão|sessão nova|nova conversa|conversa nova",
    "more": "more|next(?: page)?|show more|the rest|mehr|weiter\\w*|nächste(?: seite)?|mais|próxim\\w*(?: página)?|seguinte\\w*",
    "show": "show(?: me)?|list|display|see|zeig\\w*(?: mir)?|liste\\w*|anzeigen|mostr\\w*|lista\\w*|ver",
    "filter": "only(?: those| the ones)?(?: in| with| from)?|filter|nur|filter\\w*|só|apenas|filtr\\w*",
    "explain": "why(?: is| did)?|explain|warum(?: ist)?|wieso|erklär\\w*|por ?qu[eê](?: é)?|explic\\w*",
    "tell": "tell me (?:more )?about|info(?: on)?|details?(?: on| of| about)?|who is|what is|erzähl\\w*(?: mir)?(?: was)?(?: über)?|wer ist|details?(?: zu)?"
            "|fal\\w*(?:-me)? (?:de|da|do|sobre)|cont\\w*(?:-me)? sobre|quem é|detalhes(?: d[aoe])?|info(?: sobre)?",
    "profile": "(?:show (?:me )?)?(?:my |our |the )?profile|what is my profile|(?:zeig\\w* (?:mir )?)?(?:mein |das )?profil|(?:mostr\\w* )?(?:o )?(?:meu )?perfil",
    "progress": "progress|status|how far(?: is it)?|fortschritt|stand|wie weit(?: ist es| bist du)?|progresso|andamento|como está",
    "rejected": "(?:show (?:me )?(?:the )?)?rejected(?: ones)?|which ones did i reject|abgelehnt\\w*|verworfen\\w*|rejeitad\\w*",
    "help": "help|what can you do|hilfe|was kannst du|ajuda|o que (?:você|tu) (?:faz|podes fazer|pode fazer)",
    "export": "export(?: csv)?|export as csv|csv|download|exportier\\w*|herunterladen|export[ae]\\w*|baixar",
    "whats_new": "what(?: i|')?s new|whats new|was ist neu|was gibt(?:'s| es) neues|neuigkeiten|o que há de novo|novidades|alguma novidade",
}
"""Each command, with the words for it in English, German and Portuguese."""
FEEDBACK = {"reject": "rejected", "keep": "kept", "like": "liked", "restore": "restored"}
COSTLY = ("enrich", "search", "new_session", "start_over")
"""Commands that spend, delete or open something. Of several in a message, the last one here counts."""
ABOUT_CANDIDATES = (*FEEDBACK, "enrich", "explain", "tell", "show", "filter")
SET = "i meant?|we mean|make it|change (?:it )?to|only|just|instead|ich meinte?|wir meinen|nur|stattdessen|quis dizer|queria dizer|é|só|apenas"
ADD = "add|include|also|plus|nimm|ergänze?|füge?|auch|dazu|adicion\\w*|acrescent\\w*|inclu\\w*|põe|também"
# fmt: on
# fmt: off
BESIDE = word_set(
    "and und e or the die der das den dem a o os as number no nr nummer número numero candidate candidates kandidat kandidaten candidato candidata"
    " company companies firma empresa ab an aus weg raus zu out to from off list liste lista my me mir also auch também now jetzt agora only just nur"
    " só apenas ones one is it # nº first top best ersten primeiras primeiros melhores here hier aqui continue weiter continua continuar search suche"
    " busca discovery profile profil perfil again enrichment same session run start begin open öffne abre abrir everything all alle alles todos todas tudo them for with"
    " please bitte por favor ändern change mudar alterar pode podes because weil denn porque pois"
)
# fmt: on
"""Words that mean nothing more beside a command, its numbers and its names."""
_EVIDENCE = {
    name: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
    for name, words in COMMANDS.items()
}

_SETS = re.compile(rf"(?<!\w)(?:{SET})(?!\w)", re.IGNORECASE)


def is_evidence(name: str, quote: str) -> bool:
    """Return whether a quote contains a word for a command."""
    found = _EVIDENCE.get(name)
    return found is not None and found.search(quote) is not None


def is_set(quote: str) -> bool:
    """Return whether a quote has a word that replaces what there was, such as `only`."""
    return _SETS.search(quote) is not None


def without(names: Iterable[str], text: str) -> str:
    """Return a text without the words for some commands."""
    for name in names:
        text = _EVIDENCE[name].sub(" ", text) if name in _EVIDENCE else text
    return text


def leading(text: str) -> list[tuple[str, str]]:
    """Return the commands that a text can begin with, the longest words first, and the rest of the text."""
    found = [(name, match) for name, words in _EVIDENCE.items() if (match := words.match(text))]
    found.sort(key=lambda each: -each[1].end())
    return [(name, text[match.end() :]) for name, match in found]
