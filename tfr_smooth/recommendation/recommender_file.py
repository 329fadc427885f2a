"""The file of a `Recommender`: its model, ids and seen items as NumPy arrays."""

from __future__ import annotations

import io
import json
import os
from typing import Any

import numpy as np
import tensorflow as tf

from tfr_smooth import _files
from tfr_smooth.recommendation.factors import CatalogFactors
from tfr_smooth.recommendation.interactions import Interactions, sparse


def write(path: str | os.PathLike[str], model: CatalogFactors, seen: Interactions) -> None:
    """Writes the file."""
    weights: dict[str, Any] = {f"weights_{place}": np.asarray(each) for place, each in enumerate(model.get_weights())}
    content = io.BytesIO()
    np.savez(
        content,
        **weights,
        config=json.dumps(model.get_config()),
        user_ids=seen.user_ids.astype("U") if seen.user_ids.dtype == object else seen.user_ids,
        item_ids=seen.item_ids.astype("U") if seen.item_ids.dtype == object else seen.item_ids,
        indices=seen.matrix.indices,
        indptr=seen.matrix.indptr,
    )
    with _files.replacing(os.fspath(path)) as unfinished, open(unfinished, "wb") as file:
        file.write(content.getvalue())


def read(path: str | os.PathLike[str]) -> tuple[CatalogFactors, Interactions]:
    """Returns the model and the seen items."""
    with np.load(path) as content:
        config = json.loads(str(content["config"]))
        model = CatalogFactors.from_config(config)
        model(tf.zeros([1], tf.int32))
        model.set_weights([content[f"weights_{place}"] for place in range(len(model.get_weights()))])
        shape = config["num_users"], config["num_items"]
        indices, indptr = content["indices"], content["indptr"]
        matrix = sparse.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)
        ids = [content[name].tolist() for name in ("user_ids", "item_ids")]
    return model, Interactions(matrix, *ids)
