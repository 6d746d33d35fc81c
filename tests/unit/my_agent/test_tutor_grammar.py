"""Harper's findings in real sentences, and correct sentences without findings."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from my_agent.tutor import checks
from my_agent.tutor.corrections import apply

MISTAKES = [
    ("I has a apple.", "I have an apple.", ["agreement", "article"]),
    ("She go to school every day.", "She goes to school every day.", ["agreement"]),
    ("He don't like coffee.", "He doesn't like coffee.", ["agreement"]),
    ("I have went to the store.", "I have gone to the store.", ["verb_form"]),
    ("I didn't went there.", "I didn't go there.", ["tense"]),
    ("I went home with my freind.", "I went home with my friend.", ["spelling"]),
    ("This is a test of the the linter.", "This is a test of the linter.", ["repetition"]),
    ("I recieve alot of emails.", "I receive a lot of emails.", ["spelling", "spelling"]),
    ("She is more taller than me.", "She is taller than me.", ["grammar"]),
    ("We should of left earlier.", "We should have left earlier.", ["word_choice"]),
    ("I live here since two years.", "I live here for two years.", ["preposition"]),
    ("He has two childs.", "He has two children.", ["grammar"]),
    ("I need an advice.", "I need advice.", ["grammar"]),
    ("Its a beautiful day.", "It's a beautiful day.", ["punctuation"]),
    ("It rains,so I stay here.", "It rains, so I stay here.", ["punctuation"]),
    ("Where are you from ?", "Where are you from?", ["punctuation"]),
    ("My brother and i like it.", "My brother and I like it.", ["capitalization"]),
    ("I want to improve my english.", "I want to improve my English.", ["capitalization"]),
    ("See you on Wendesday.", "See you on Wednesday.", ["spelling"]),
    ("She does a lot of homeworks.", "She does a lot of homework.", ["grammar"]),
    ("I like teh sea.", "I like the sea.", ["spelling"]),
    ("It will rain tommorow.", "It will rain tomorrow.", ["spelling"]),
    ("helo freind", "hello friend", ["spelling", "spelling"]),
    ("I goed home.", "I went home.", ["grammar"]),
    ("I have goed home.", "I have gone home.", ["grammar"]),
    ("I like 🍎 and she go there.", "I like 🍎 and she goes there.", ["agreement"]),
]


@pytest.mark.parametrize(("text", "corrected", "types"), MISTAKES)
def test_mistake_is_found_and_corrected(text: str, corrected: str, types: list[str]) -> None:
    issues = checks.check(text)
    assert apply(text, issues) == corrected
    assert [issue["type"] for issue in issues] == types
    for issue in issues:
        assert text[issue["start"] : issue["end"]] == issue["original"]
        assert issue["message"]
        assert {"rules", "harper"}.issuperset(issue["sources"])


CORRECT = [
    "How are you doing today?",
    "I went to the store yesterday and bought some milk.",
    "Could you help me with my homework, please?",
    "I've been learning English for two years.",
    "The weather was nice, so we decided to go for a walk in the park near the river.",
    "Let's eat, grandma!",
    "He said, “I'm tired.”",
    "We should meet at 5 pm on Friday.",
    "It depends on the weather, doesn't it?",
    "I'm gonna go. Wanna come?",
    "ok thanks",
    "IMHO it takes 30 ms, and my co-worker is sure of her re-election.",
    "lol that's so funny 😂",
    "No worries, mate! I'll see you at uni tomorrow.",
    # American and British spelling.
    "My favourite colour is grey.",
    "My favorite color is gray.",
    "We realised that the organisation had travelled to the theatre.",
    # Lists with and without the Oxford comma.
    "I bought bread, milk and eggs.",
    "I bought bread, milk, and eggs.",
    # Names.
    "Hello! My name is João and I'm from São Paulo.",
    "I work with Kubernetes and FastAPI at Nubank.",
    "See https://example.com/foo_bar?x=1 or mail me at ana.b@foo.io",
    "Call me at 555-1234.",
    # Foreign words in a sentence, and texts in other languages.
    "In Portuguese we say saudade.",
    "He said “hola” to me.",
    'Como se diz "saudade" em inglês?',
    "Eu gosto muito de aprender inglês todos os dias.",
    "Olá, tudo bem?",
    "Hola, ¿cómo estás?",
    "Ich möchte besser Englisch sprechen.",
    "Ich bin müde",
    "Bonjour, je voudrais apprendre l'anglais.",
    "こんにちは、元気ですか",
    "Merhaba, bugün nasılsın?",
    # Texts without words.
    "",
    "   ",
    "😂😂",
    "42",
    "x",
    "a\x00b",
]


@pytest.mark.parametrize("text", CORRECT)
def test_correct_text_has_no_issues(text: str) -> None:
    assert checks.check(text) == []


def test_check_is_thread_safe() -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(checks.check, ["I has a apple."] * 40))
    assert found == [checks.check("I has a apple.")] * 40


def test_long_message_is_checked_completely() -> None:
    sentence = "I has a apple. "
    issues = checks.check(sentence * 250)
    assert apply(sentence * 250, issues) == "I have an apple. " * 250
