"""The exact metrics equal those of trec_eval, computed with pytrec_eval."""

import numpy as np
import pytest
import pytrec_eval

from tfr_smooth import metrics


def lists(seed, tied):
    """Returns random labels and scores with padding anywhere and some lists without relevant documents."""
    random = np.random.RandomState(seed)
    labels = random.choice([0, 0, 0, 1, 2, 3], (40, 25)).astype(np.float32)
    labels[::7] = 0.0
    scores = random.randint(0, 5, labels.shape) if tied else random.randn(*labels.shape)
    labels[random.rand(*labels.shape) < 0.3] = -1.0
    labels[5, 1:] = -1.0  # one document
    labels[:, 0] = np.maximum(labels[:, 0], 0.0)
    return labels, scores.astype(np.float32)


def trec_eval(measure, labels, scores):
    """Returns the measure of each query; the names of documents are their positions."""
    labels = np.where(labels > 0, 2**labels - 1, labels) if measure == "ndcg_cut_10" else labels  # exponential gains
    qrels, run = {}, {}
    for q, (row_labels, row_scores) in enumerate(zip(labels, scores, strict=True)):
        real = [j for j in range(len(row_labels)) if row_labels[j] >= 0]
        qrels[str(q)] = {f"{j:03d}": int(row_labels[j]) for j in real}
        run[str(q)] = {f"{j:03d}": float(row_scores[j]) for j in real}
    results = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    return [results[str(q)][measure] for q in range(len(labels))]


MEASURES = (*(f"{name}_{k}" for name in ("ndcg_cut", "P", "map_cut", "recall", "success") for k in (1, 30)), "P_100")
CASES = {name: metrics.of_trec_eval(name) for name in (*MEASURES, "ndcg", "map", "recip_rank")}
CASES["ndcg_cut_10"] = metrics.NDCGMetric(topn=10)  # with exponential gains


def test_measures_without_a_metric_are_refused():
    assert metrics.of_trec_eval("recip_rank_3").get_config()["topn"] == 3
    for name in ("Rprec", "ndcg_5", "ndcg@5", None):
        with pytest.raises(ValueError, match=f"`measure` must be .*, got {name!r}"):
            metrics.of_trec_eval(name)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("measure", CASES)
def test_mean_equals_trec_eval(measure, tied):
    metric = CASES[measure]
    for seed in range(3):
        labels, scores = lists(seed, tied)
        expected = np.array(trec_eval(measure, labels, scores))
        metric.reset_state()
        for start in range(0, 40, 16):  # The last batch is smaller.
            metric.update_state(labels[start : start + 16], scores[start : start + 16])
        np.testing.assert_allclose(float(metric.result()), expected.mean(), atol=1e-6)
        skipping = type(metric).from_config({**metric.get_config(), "no_relevant": "skip"})
        skipping.update_state(labels, scores)
        has_relevant = (labels > 0).any(axis=1)
        assert 0 < has_relevant.sum() < 40
        np.testing.assert_allclose(float(skipping.result()), expected[has_relevant].mean(), atol=1e-6)
