"""The exported reranker."""

import numpy as np
import pytest
import tensorflow as tf

from tests.text.conftest import SCORERS, few_families, inputs_of, make
from tfr_smooth import text


def reranker(family, collection, run, scorer):
    encoder, tokenizer = make(family)
    return SCORERS[scorer](encoder), inputs_of(scorer, tokenizer, collection, run)


@pytest.mark.slow
@pytest.mark.parametrize("scorer", ["cross", "late"])
@few_families
def test_texts_get_the_models_scores(family, collection, run, tmp_path, scorer):
    model, inputs = reranker(family, collection, run, scorer)
    folder = text.export_reranker(model, tmp_path, inputs=inputs)
    assert folder.name == "1"
    signature = tf.saved_model.load(folder).signatures["serving_default"]
    queries = ["q0", "q1"]
    documents = [list(run[query_id])[:4] for query_id in queries]
    found = signature(
        query=tf.constant([collection.queries[query_id] for query_id in queries]),
        documents=tf.constant([[collection.documents[doc_id].content for doc_id in row] for row in documents]),
    )["scores"]
    expected = inputs.rank(model, dict(zip(queries, documents, strict=True)))
    np.testing.assert_allclose(found, [list(expected[query_id].values()) for query_id in queries], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("scorer", ["late", "cross"])
def test_ids_get_the_models_scores(collection, run, tmp_path, scorer):
    model, inputs = reranker("bert", collection, run, scorer)
    text.export_reranker(model, tmp_path, inputs=inputs, texts=False)
    signatures = tf.saved_model.load(text.export_reranker(model, tmp_path, inputs=inputs, texts=False))
    batch = inputs.batch(["q0"], [list(run["q0"])[:3]])
    ids = {name: tf.constant(array) for name, array in batch.items()}
    for name in ("ids", "serving_default"):
        np.testing.assert_allclose(signatures.signatures[name](**ids)["scores"], model(ids), atol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]
