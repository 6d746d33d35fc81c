"""Vector index: how the store embeds items and queries."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings
from langgraph.store.base import get_text_at_path, tokenize_path

from langgraph_runtime_sql.store.rows import Vector


class Vectors(NamedTuple):
    """Vectors by text. A model may embed a query differently from a document."""

    documents: dict[str, Vector]
    queries: dict[str, Vector]


NO_VECTORS = Vectors({}, {})


class Index:
    """How items are embedded: the model, its dimensions and the indexed fields."""

    def __init__(self, config: Mapping[str, Any], embeddings: Embeddings) -> None:
        dims = config.get("dims")
        if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
            raise ValueError(
                "store.index.dims must be the number of dimensions of the embeddings, 1 or more"
            )
        self.dims = dims
        self.embeddings = embeddings
        fields = config.get("fields") or ["$"]
        self.fields: list[str] = [fields] if isinstance(fields, str) else list(fields)

    def texts(self, value: Any, only: list[str] | None) -> dict[str, str]:
        """Return the texts of `value` to embed, by field; `only` replaces the configured fields."""
        texts = {}
        for field in self.fields if only is None else only:
            found = get_text_at_path(value, "$" if field == "$" else tokenize_path(field))
            if len(found) == 1:
                texts[field] = found[0]
            else:
                texts.update((f"{field}.{i}", text) for i, text in enumerate(found))
        return texts

    def embed(self, documents: list[str], queries: list[str]) -> Vectors:
        """Embed texts on the calling thread.

        Raises:
            ValueError: the model does not return `dims` finite numbers for each text.
        """
        model = self.embeddings
        return self._vectors(
            (documents, model.embed_documents(documents) if documents else []),
            (queries, [model.embed_query(text) for text in queries]),
        )

    async def aembed(self, documents: list[str], queries: list[str]) -> Vectors:
        """Embed texts as `embed` does, without blocking the event loop."""
        model = self.embeddings
        return self._vectors(
            (documents, await model.aembed_documents(documents) if documents else []),
            (queries, await asyncio.gather(*(model.aembed_query(text) for text in queries))),
        )

    def _vectors(self, *embedded: tuple[list[str], list[list[float]]]) -> Vectors:
        found = ([(t, self._vector(v)) for t, v in zip(*each, strict=True)] for each in embedded)
        return Vectors(*map(dict, found))

    def _vector(self, numbers: list[float]) -> Vector:
        import numpy as np

        vector = np.asarray(numbers, np.float32)
        if vector.shape != (self.dims,) or not np.isfinite(vector).all():
            raise ValueError(
                f"The embedding model returned {vector.size} numbers for a text, but "
                f"store.index.dims requires {self.dims} finite ones"
            )
        return vector
