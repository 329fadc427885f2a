"""How the neural rankers of a study are trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import Any

from tfr_smooth import _arguments, losses

NORMALIZATIONS = ("none", "min_max", "standardize", "log1p", "quantile")
SCHEDULES = ("constant", "cosine")
SELECT_BY = ("smooth", "ndcg")

# What differs from the defaults of `Recipe`, and hyperparameters of the losses that have them, by name.
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
    # That of the SmoothI paper.
    "paper": {},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a neural ranker is trained; the defaults are those of the SmoothI paper.

    Args:
      hidden: Widths of the hidden layers, or a name that `models.FeedForwardScorer` knows, such as "B64".
      learning_rate: Adam's learning rate.
      batch_size: Queries per batch.
      epochs: Passes over the training set.
      normalization: What is done to the features first: "none"; "min_max" per query; "standardize"; "log1p"; or
        "quantile", the share of the training documents with a lower value.
      select_by: What selects the epoch on the validation set: the "smooth" metric that the loss optimizes, or exact
        "ndcg". Losses that optimize no metric always select by NDCG.
      dropout: Share of the hidden units that a training step drops.
      weight_decay: AdamW's decay of the kernels.
      input_noise: Standard deviation of the normal noise that a training step adds to the features.
      linear_path: If not None, a linear function of the features is added to the network's scores. It starts at ridge
        regression with this strength, scaled to scores with a standard deviation of 1, and the network starts at 0.
      attention_heads: If not 0, `models.ListAttention` with this many heads in front of the last layer.
      average_weights: If not 0, the decay of the exponential moving average of the weights that is evaluated.
      schedule: "constant", or "cosine" decay of the learning rate to 0 at the last step.
      patience: Stop after this many epochs without a better one; None never stops.
      members: Number of networks, each trained with its own seed, whose scores are averaged.
      mixture: Other losses that are added to the loss, with their weights, by name.

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
                raise ValueError(f"`hidden` must be a list of widths or a name, got {self.hidden!r}.")
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
        """Returns the fields that differ from the defaults, as JSON values."""
        different = (field for field in dataclasses.fields(self) if getattr(self, field.name) != DEFAULTS[field.name])
        values = {field.name: getattr(self, field.name) for field in different}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


DEFAULTS = dataclasses.asdict(Recipe())
FIELDS = tuple(DEFAULTS)


def split_settings(settings: Mapping[str, Any]) -> tuple[Recipe, dict[str, Any]]:
    """Returns the recipe that the settings of a neural ranker describe, and the hyperparameters of its loss.

    Args:
      settings: Fields of `Recipe` and hyperparameters of the loss, by name.
    """
    recipe = Recipe(**{name: value for name, value in settings.items() if name in FIELDS})
    return recipe, {name: value for name, value in settings.items() if name not in FIELDS}


def expanded(settings: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """Returns the settings of a neural ranker with those of its named recipe, which they replace.

    Args:
      settings: Settings, and possibly `recipe`, a name in `RECIPES`.
      known: The settings that the ranker takes.

    Example:
      >>> from tfr_smooth.study import recipe
      >>> recipe.expanded({"recipe": "default", "members": 1}, known=("members", "dropout"))
      {'dropout': 0.5, 'members': 1}
    """
    others = dict(settings)
    named = RECIPES[_arguments.choice("recipe", others.pop("recipe", "paper"), tuple(RECIPES))]
    return {**{name: value for name, value in named.items() if name in known}, **others}
