"""Training settings of the neural rankers of a study."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import Any

from tfr_smooth import _arguments, losses

NORMALIZATIONS = ("none", "min_max", "standardize", "log1p", "quantile")
SCHEDULES = ("constant", "cosine")
SELECT_BY = ("smooth", "ndcg")

# By name: differences from the defaults of `Recipe`, and hyperparameters for the losses that have them.
RECIPES: dict[str, dict[str, Any]] = {
    # Selected on the validation queries of MQ2008 and MQ2007 (docs/results.md).
    "default": {
        "alpha": 10,
        "learning_rate": 0.01,
        "batch_size": 32,
        "normalization": "standardize",
        "linear_path": 1.0,
        "dropout": 0.5,
        "members": 3,
        "epochs": 30,
    },
    # The SmoothI paper's.
    "paper": {},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """Training settings of a neural ranker; the defaults are the SmoothI paper's.

    Args:
      hidden: Widths of the hidden layers, each >= 1, or the name of an architecture of `models.FeedForwardScorer`, such
        as "B64".
      learning_rate: Adam's learning rate, > 0.
      batch_size: Queries per batch, >= 1.
      epochs: Maximum number of passes over the training set, >= 1.
      normalization: Normalization of the features: "none"; "min_max" per query; "standardize"; "log1p"; or "quantile",
        the fraction of the training documents with a lower value.
      select_by: The validation metric that selects the best epoch: "smooth", the metric that the loss optimizes, or
        "ndcg", exact NDCG. Losses that do not optimize a metric always use NDCG.
      dropout: Dropout rate of the hidden units, in [0, 1).
      weight_decay: AdamW's weight decay, >= 0, applied to kernels only.
      input_noise: Standard deviation of the Gaussian noise added to the features in training, >= 0.
      linear_path: Strength of a ridge regression, > 0. A linear function of the features is added to the network's
        scores. It is initialized with this ridge regression, scaled to scores with a standard deviation of 1, and the
        network's output is initialized to 0. None adds no linear function.
      attention_heads: Number of heads of a `models.ListAttention` before the last layer, >= 0; 0 for no attention.
      average_weights: Decay of the exponential moving average of the weights, in [0, 1). The averaged weights are
        evaluated. 0 for no averaging.
      schedule: Schedule of the learning rate: "constant", or "cosine" decay to 0 at the last step.
      patience: Number of epochs without improvement, >= 1, after which training stops; None never stops early.
      members: Number of networks in the ensemble, >= 1. Each is trained with its own seed; their scores are averaged.
      mixture: Weights, > 0, of further losses that are added to the loss, by the names of the losses.

    Raises:
      ValueError: If an argument is out of its range.

    Example:
      >>> from tfr_smooth import study
      >>> study.Recipe(hidden="B64", epochs=10).changes()
      {'hidden': 'B64', 'epochs': 10}
    """

    hidden: str | tuple[int, ...] = (1024,)
    learning_rate: float = 0.001
    batch_size: int = 128
    epochs: int = 50
    normalization: str = "none"
    select_by: str = "smooth"
    dropout: float = 0.0
    weight_decay: float = 0.0
    input_noise: float = 0.0
    linear_path: float | None = None
    attention_heads: int = 0
    average_weights: float = 0.0
    schedule: str = "constant"
    patience: int | None = None
    members: int = 1
    mixture: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not isinstance(self.hidden, str):
            if not isinstance(self.hidden, Sequence):
                raise ValueError(
                    f"`hidden` must be a list of widths or the name of an architecture, got {self.hidden!r}."
                )
            widths = tuple(_arguments.integer("hidden", width, least=1) for width in self.hidden)
            object.__setattr__(self, "hidden", widths)
        _arguments.real("learning_rate", self.learning_rate, above=0.0)
        for name in ("batch_size", "epochs", "members"):
            _arguments.integer(name, getattr(self, name), least=1)
        _arguments.integer("attention_heads", self.attention_heads, least=0)
        for name in ("dropout", "average_weights"):
            if getattr(self, name) != 0.0:
                _arguments.real(name, getattr(self, name), above=0.0, below=1.0)
        for name in ("weight_decay", "input_noise"):
            if getattr(self, name) != 0.0:
                _arguments.real(name, getattr(self, name), above=0.0)
        if self.linear_path is not None:
            _arguments.real("linear_path", self.linear_path, above=0.0)
        if self.patience is not None:
            _arguments.integer("patience", self.patience, least=1)
        for name, weight in self.mixture.items():
            _arguments.choice("mixture", name, losses.NAMES)
            _arguments.real("mixture", weight, above=0.0)
        _arguments.choice("normalization", self.normalization, NORMALIZATIONS)
        _arguments.choice("select_by", self.select_by, SELECT_BY)
        _arguments.choice("schedule", self.schedule, SCHEDULES)

    def changes(self) -> dict[str, Any]:
        """Returns the fields that differ from the defaults.

        Returns:
          JSON values by the names of the fields.
        """
        different = (field for field in dataclasses.fields(self) if getattr(self, field.name) != DEFAULTS[field.name])
        values = {field.name: getattr(self, field.name) for field in different}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


DEFAULTS = dataclasses.asdict(Recipe())
FIELDS = tuple(DEFAULTS)


def split_settings(settings: Mapping[str, Any]) -> tuple[Recipe, dict[str, Any]]:
    """Splits the settings of a neural ranker into a recipe and the hyperparameters of its loss.

    Args:
      settings: Fields of `Recipe` and hyperparameters of the loss, by name.
    """
    recipe = Recipe(**{name: value for name, value in settings.items() if name in FIELDS})
    return recipe, {name: value for name, value in settings.items() if name not in FIELDS}


def expanded(settings: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """Returns the settings of a neural ranker, completed by the settings of its named recipe.

    Args:
      settings: Settings by name. `recipe` may name one of `RECIPES`, whose settings the others override; without it,
        the recipe is "paper".
      known: The names of the ranker's settings; those of the recipe that are not among them are ignored.

    Example:
      >>> from tfr_smooth.study import recipe
      >>> recipe.expanded({"recipe": "default", "members": 1}, known=("members", "dropout"))
      {'dropout': 0.5, 'members': 1}
    """
    others = dict(settings)
    named = RECIPES[_arguments.choice("recipe", others.pop("recipe", "paper"), tuple(RECIPES))]
    return {**{name: value for name, value in named.items() if name in known}, **others}
