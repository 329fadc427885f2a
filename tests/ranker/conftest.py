"""A `Ranker.fit` that does not train, for tests of what it does before."""

import pytest

from tfr_smooth.ranker import training


@pytest.fixture
def untrained(monkeypatch):
    """`Ranker.fit` learns columns and statistics, and keeps the first weights; returns the epochs of each training."""
    seen = []

    def prepared(model, dataset_fn, epochs, prepare, validation, **others):
        seen.append(epochs)
        prepare()
        if validation is not None:
            validation.of_last = [[1.0], [0.5]]
        return {"loss": [0.0] * epochs}

    monkeypatch.setattr(training, "train", prepared)
    return seen
