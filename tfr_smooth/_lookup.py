"""Losses and metrics by name, config or instance, like Keras's `get`; the combinations of rankings and measures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from tfr_smooth import _arguments, _serialization, measures, rankings

T = TypeVar("T")


class Combination(NamedTuple):
    """The classes of a ranking and of a measure that can be computed from it."""

    ranking: type[rankings.Ranking]
    measure: type[measures.Measure]

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Arguments of the ranking and the measure, with their defaults."""
        return {field.name: field.default for part in self for field in dataclasses.fields(part)}

    def make(self, cls: Callable[..., T], /, **arguments: Any) -> T:
        """Returns an object of a class of losses or metrics, given the arguments of all three."""
        own = [{field.name for field in dataclasses.fields(part)} & set(arguments) for part in self]
        parts = [part(**{key: arguments[key] for key in keys}) for part, keys in zip(self, own, strict=True)]
        options = {key: value for key, value in arguments.items() if key not in own[0] | own[1]}
        return cls(ranking=parts[0], measure=parts[1], **options)


for _package in ("rankings", "measures"):
    _serialization.import_modules(f"tfr_smooth.{_package}")
# By name: "smoothi_ndcg", ...
COMBINATIONS: dict[str, Combination] = {
    f"{ranking_name}_{measure_name}": Combination(ranking, measure)
    for ranking_name, ranking in rankings.RANKINGS.items()
    for measure_name, measure in measures.MEASURES.items()
    if issubclass(ranking, measure.ranking_class)
}
# All measures with the exact ranking, those without smooth variants included.
EXACT = {
    name: Combination(rankings.ExactRanking, measure)
    for name, measure in {**measures.MEASURES, **measures.EXACT_ONLY}.items()
}
_NAMES = {combination: name for name, combination in {**COMBINATIONS, **EXACT}.items()}


def name_of(ranking: rankings.Ranking, measure: measures.Measure) -> str | None:
    """Returns the name of a combination; None for user-defined classes."""
    return _NAMES.get(Combination(type(ranking), type(measure)))


def get(
    identifier: Any,
    arguments: Mapping[str, Any],
    classes: Mapping[str, Callable[..., T]],
    base: type[T],
    *,
    argument: str = "identifier",
) -> T | None:
    """Returns the object that the identifier refers to.

    Args:
      identifier: A key of `classes` or a class name, with an optional cutoff ("ndcg@10"); a config, an instance of
        `base`, or None.
      arguments: Constructor arguments; only valid with a name.
      classes: Name -> class, or `functools.partial` that makes an instance.
      base: The base class.
      argument: Name of the identifier, for error messages.

    Returns:
      An instance of `base`; None for None.

    Raises:
      ValueError: If the identifier is unknown, or arguments are given without a name.
    """
    if isinstance(identifier, str):
        by_class = {each.__name__: each for each in classes.values() if hasattr(each, "__name__")}
        name, arguments = with_cutoff(argument, identifier, arguments)
        name = name.removeprefix(f"{_serialization.PACKAGE}>")
        # TF-Ranking's names of losses end in "_loss".
        name = name.removesuffix("_loss") if name.removesuffix("_loss") in classes else name
        make = by_class[name] if name in by_class else classes[_arguments.choice(argument, name, classes)]
        return make(**arguments)
    if arguments:
        got = f"{sorted(arguments)} for {identifier!r}"
        raise ValueError(f"`arguments` must be empty unless `{argument}` is a name, got {got}.")
    if identifier is None or isinstance(identifier, base):
        return identifier
    if isinstance(identifier, Mapping):
        name, known = _serialization.registered(identifier)
        if not (isinstance(known, type) and issubclass(known, base)):
            expected = f"a config of a {base.__name__} of tfr_smooth or one registered with Keras"
            raise ValueError(f"`{argument}` must be {expected}, got {name!r}.")
        return known.from_config(dict(identifier["config"]))  # type: ignore[attr-defined]
    expected = f"a name, a config, an instance of {base.__name__} or None"
    raise ValueError(f"`{argument}` must be {expected}, got {identifier!r}.")


def with_cutoff(argument: str, identifier: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Returns the name of NAME@K, and the arguments with `topn`; those of another name as they are."""
    name, has_cutoff, topn = identifier.partition("@")
    if has_cutoff and (not topn.isdecimal() or "topn" in arguments):
        raise ValueError(f"`{argument}` must be a name, or NAME@K without `topn`, got {identifier!r}.")
    return name, {**arguments, "topn": int(topn)} if has_cutoff else arguments
