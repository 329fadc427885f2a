"""Recipes: validation, and the settings that differ from the defaults."""

import pytest

from tfr_smooth import losses, study
from tfr_smooth.study import recipe


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("hidden", 3), ("hidden", [0]), ("learning_rate", 0.0), ("batch_size", 0), ("epochs", 1.5)),
        *(("normalization", "zscore"), ("select_by", "loss"), ("dropout", 1.0), ("weight_decay", -1.0)),
        *(("input_noise", -1.0), ("linear_path", 0.0), ("average_weights", 1.0), ("schedule", "step")),
        *(("patience", 0), ("members", 0), ("attention_heads", -1)),
        *(("mixture", {"list_net": -1.0}), ("mixture", {"list": 1.0})),
    ],
)
def test_invalid_arguments_raise(argument, value):
    with pytest.raises(ValueError, match=f"^`{argument}` must be .*, got "):
        study.Recipe(**{argument: value})


def test_changes_restore_the_recipe():
    changed = study.Recipe(hidden=[8, 4], epochs=3, linear_path=1.0, mixture={"list_net": 0.5})
    assert changed.changes() == {"hidden": [8, 4], "epochs": 3, "linear_path": 1.0, "mixture": {"list_net": 0.5}}
    assert study.Recipe(**changed.changes()) == changed
    assert study.Recipe().changes() == {}


def test_fields_and_hyperparameters_of_losses_have_different_names():
    for name in losses.NAMES:
        assert set(losses.hyperparameters(name)).isdisjoint(recipe.FIELDS), name
