"""The loss of a training that starts on softmax: weights, gradients, and the model that its checkpoints hold."""

import json

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests import checks
from tests.helpers import assert_same, check_run, in_graph, value_and_gradient
from tests.losses.test_weights import DOCUMENTS, MULTI_SCORE, PAIRS, cases
from tfr_smooth import losses, metrics, training

LABELS, SCORES = checks.SUBJECTS["softmax"].batch
RANDOM = np.random.RandomState(2)
WEIGHTS = {
    "none": None,
    "lists": np.float32([1.0, 0.0, 2.0, 0.5, 3.0]),
    "documents": RANDOM.randint(0, 3, LABELS.shape).astype(np.float32),
}


def each(name, reduction="none"):
    seed = {"seed": 3} if "seed" in losses.hyperparameters(name) else {}
    return checks.SUBJECTS[name].make(reduction=reduction, **seed)


@pytest.mark.parametrize("name", cases(losses.NAMES))
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_each_stage_has_the_value_and_the_gradient_of_its_loss(name, weights):
    for reduction in ("none", "mean_with_sample_weight"):
        loss = training.SoftmaxFirstLoss(each(name, reduction))
        for current in (losses.SoftmaxLoss(reduction=reduction), loss.loss):
            loss.is_first.assign(current is not loss.loss)
            for run in (value_and_gradient, in_graph):
                found = []
                for one in (loss, current):
                    tf.random.set_seed(0)
                    found.append(run(one, LABELS, SCORES, weights))
                assert_same(*found, rtol=1e-6, atol=1e-7)


def noisy(kind, seed=0):
    """Returns 300 queries of 6 rows, of which a fourth has a wrong label and the weight 0."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame({"query": np.repeat(np.arange(300), 6), "a": random.normal(size=1800)})
    table["label"] = (table["a"] + 0.3 * random.normal(size=1800) > 0.5).astype(float)
    wrong = random.random(1800) < 0.24
    table["weight"] = 1.0 - wrong
    if kind == "too high":
        table.loc[wrong, "label"] = 3.0 * (table.loc[wrong, "a"] < 0.0)
    elif kind == "any":
        table.loc[wrong, "label"] = 1.0 - table.loc[wrong, "label"]
    return table
