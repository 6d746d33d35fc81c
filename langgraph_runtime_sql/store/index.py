"""Index: how the store's items become vectors that a search can find."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings
from langgraph.store.base import get_text_at_path, tokenize_path

from langgraph_runtime_sql.store.sqlite_rows import Vector


class Vectors(NamedTuple):
    """What a model made of texts, by text: models may embed a query in a way of its own."""

    documents: dict[str, Vector]
    queries: dict[str, Vector]


NO_VECTORS = Vectors({}, {})


class Index:
    """How items are embedded: the model, its dimensions and the fields it reads."""

    def __init__(self, config: Mapping[str, Any], embeddings: Embeddings) -> None:
        dims = config.get("dims")
        if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
            raise ValueError("store.index.dims must be the number of dimensions of the embeddings")
        self.dims = dims
        self.embeddings = embeddings
        fields = config.get("fields") or ["$"]
        self.fields: list[str] = [fields] if isinstance(fields, str) else list(fields)

    def texts(self, value: Any, only: list[str] | None) -> dict[str, str]:
        """Every text of `value` that is to be found, by the name of its field."""
        texts = {}
        for field in self.fields if only is None else only:
            found = get_text_at_path(value, "$" if field == "$" else tokenize_path(field))
            if len(found) == 1:
                texts[field] = found[0]
            else:
                texts.update((f"{field}.{i}", text) for i, text in enumerate(found))
        return texts

    def embed(self, documents: list[str], queries: list[str]) -> Vectors:
        """The vectors of these texts, blocking.

        Raises:
            ValueError: the model does not give `dims` finite numbers for each.
        """
        model = self.embeddings
        return self._vectors(
            (documents, model.embed_documents(documents) if documents else []),
            (queries, [model.embed_query(text) for text in queries]),
        )

    async def aembed(self, documents: list[str], queries: list[str]) -> Vectors:
        """The vectors of these texts.

        Raises:
            ValueError: the model does not give `dims` finite numbers for each.
        """
        model = self.embeddings
        return self._vectors(
            (documents, await model.aembed_documents(documents) if documents else []),
            (queries, await asyncio.gather(*(model.aembed_query(text) for text in queries))),
        )

    def _vectors(self, *embedded: tuple[list[str], list[list[float]]]) -> Vectors:
        return Vectors(
            *(
                {text: self._vector(numbers) for text, numbers in zip(*pairs, strict=True)}
                for pairs in embedded
            )
        )

    def _vector(self, numbers: list[float]) -> Vector:
        import numpy as np

        vector = np.asarray(numbers, np.float32)
        if vector.shape != (self.dims,) or not np.isfinite(vector).all():
            raise ValueError(
                f"The embedding model gave {vector.size} numbers for a text, where "
                f"store.index.dims promises {self.dims} finite ones"
            )
        return vector
