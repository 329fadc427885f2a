"""Values of wrong types are refused by the name of the argument, in constructors and `fit` of the estimators."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from tests import helpers
from tfr_smooth import losses, metrics, recommendation
from tfr_smooth.ranker.training import RankerTraining
from tfr_smooth.recommendation.stages import RecommenderTraining


class Thing:
    """Of no type that an argument has."""


WRONG = [Thing(), 3 + 4j, [Thing()], {"a": Thing()}, "no such thing"]
# Messages about what is in tables and files name the column or the path.
OF_TABLES = r"`(table|paths|checkpoint)` must|column 'a' must|must have the column"
# A text is a folder there, and names of columns are used with tables only.
TAKE_ALL = {"checkpoint_dir", "cache_dir", "item_id", "user_id"}


class ReachedError(BaseException):
    """Where the arguments were taken."""


def reached(*_, **__):
    raise ReachedError


def of_ranker(monkeypatch):
    monkeypatch.setattr(RankerTraining, "train", reached)
    frame = pd.DataFrame({"price": np.arange(24.0), "query": np.arange(24) // 4, "label": np.arange(24) % 3})
    base = {"trees": False, "verbose": False}
    return tfr_smooth.Ranker, base, {"X": frame, "label": "label", "query": "query"}


def of_recommender(monkeypatch):
    monkeypatch.setattr(RecommenderTraining, "run", reached)
    seen = recommendation.Interactions(np.random.default_rng(0).random([20, 15]) < 0.3)
    return recommendation.Recommender, {"verbose": False}, {"interactions": seen}


def of_text_ranker(monkeypatch):
    text = pytest.importorskip("tfr_smooth.text", reason="text needs Keras 3")
    monkeypatch.setattr(text.TextRanker, "_train", reached)
    folder = helpers.documents.ROOT / "tests" / "text" / "published" / "bert"
    table = {"query": list("aabb"), "text": list("cdef"), "label": [0, 1, 0, 1]}
    base = {"encoder": folder, "length": 12, "query_length": 6, "verbose": False}
    return text.TextRanker, base, {"X": table}


def refused(call, name):
    """Returns whether the call refuses the argument, in a message that names it."""
    try:
        call()
    except (ValueError, TypeError) as error:
        is_table = name in ("X", "validation", "items", "users", "encoder") and re.search(OF_TABLES, str(error))
        assert name in str(error) or is_table, (name, error)
        return True
    except ReachedError:
        pass
    return False


@pytest.mark.parametrize("make", [of_ranker, of_recommender, pytest.param(of_text_ranker, marks=pytest.mark.slow)])
def test_estimators_refuse_values_of_wrong_types_by_name(make, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where a text is a new folder
    kind, base, data = make(monkeypatch)
    arguments = [name for name in inspect.signature(kind).parameters if name != "loss_options"]
    of_fit = [name for name in inspect.signature(kind.fit).parameters if name != "self"]
    taken = []
    for name in arguments:
        calls = [lambda value=value: kind(**{**base, name: value}).fit(**data) for value in WRONG]  # noqa: B023
        taken += [name] * (not all(refused(call, name) for call in calls))
    for name in of_fit:
        calls = [lambda value=value: kind(**base).fit(**{**data, name: value}) for value in WRONG]  # noqa: B023
        taken += [name] * (not all(refused(call, name) for call in calls))
    assert set(taken) <= TAKE_ALL


def test_losses_and_metrics_refuse_values_of_wrong_types_by_name():
    for module, names in ((losses, losses.NAMES), (metrics, metrics.NAMES)):
        for name in names:
            for argument in module.hyperparameters(name):
                for value in WRONG:
                    assert refused(lambda: module.get(name, **{argument: value}), argument), (name, argument)  # noqa: B023
