"""What `Ranker`, `Recommender` and `TextRanker` have in common: arguments, attributes, files and pickles."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import io
import json
import os
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import tensorflow as tf
from typing_extensions import Self

from tfr_smooth import _arguments, _files, _scikit_learn, _serialization, losses
from tfr_smooth.data.lists import have_different_labels
from tfr_smooth.data.reading.checks import warn
from tfr_smooth.evaluation.trec import ByMeasure, checked_measures, evaluate_rows

_FILE = "estimator.keras"  # in a pickle; Keras looks at the ending
_CONTENT, _ARRAYS, _WEIGHTS = "estimator.json", "estimator.npz", "model.weights.h5"
_KERAS = "keras_object"  # the key of the configuration of a Keras object among JSON values
_LEAST_QUERIES = 10  # that may choose the epoch without a warning; not tuned

F = TypeVar("F", bound=Callable[..., Any])

_process: int | None = None  # the first one that used TensorFlow


def check_process() -> None:
    """Checks that no parent of this process used TensorFlow before a fork, after which a child waits forever.

    Raises:
      RuntimeError: If one did.
    """
    global _process
    if _process not in (None, os.getpid()):
        raise RuntimeError(
            "TensorFlow does not work in a process forked from one that used it: start processes with "
            'multiprocessing.get_context("spawn"), or train and load models only in the children.'
        )
    _process = os.getpid()


def serialized(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments of a constructor with the configurations of their Keras objects."""
    kinds = (tf.keras.losses.Loss, tf.keras.layers.Layer)
    found = {name: value for name, value in params.items() if isinstance(value, kinds)}
    return {**params, **{name: {_KERAS: tf.keras.utils.serialize_keras_object(each)} for name, each in found.items()}}


def settings_of(params: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    """Returns arguments and others as JSON values, the settings that a resumed training run must have in common."""
    settings = {**serialized(params), **others}
    del settings["verbose"]
    return json.loads(json.dumps(settings, default=str))


def _deserialized(params: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value[_KERAS] for name, value in params.items() if isinstance(value, dict) and _KERAS in value}
    return {**params, **{name: tf.keras.utils.deserialize_keras_object(config) for name, config in found.items()}}


def digest(arrays: Iterable[np.ndarray]) -> str:
    """Returns a hash of the content of arrays of numbers or text."""
    content = hashlib.sha256()
    for array in arrays:
        content.update(f"{array.dtype} {array.shape} ".encode())
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()[:16]


def check_shared(params: Mapping[str, Any], *, select_by: Iterable[str] = ("last",)) -> None:
    """Checks the arguments that all estimators have.

    Args:
      params: The arguments of the constructor.
      select_by: The values of `select_by` besides trec_eval's measures.

    Raises:
      ValueError: If one is out of its range.
    """
    _arguments.integer("epochs", params["epochs"], least=0)
    _arguments.integer("batch_size", params["batch_size"], least=1)
    _arguments.real("learning_rate", params["learning_rate"], above=0.0)
    _arguments.real("validation_fraction", params["validation_fraction"], least=0.0, below=1.0)
    _arguments.integer_or_none("patience", params["patience"], least=1)
    _arguments.integer("seed", params["seed"], least=0)
    _arguments.boolean("verbose", params["verbose"])
    if params["select_by"] not in select_by:
        more = "".join(f"{name!r}, " for name in select_by)
        checked_measures([params["select_by"]], argument="select_by", more=more)


def check_validation(lists: Any, argument: str, select_by: str) -> None:
    """Checks that validation queries can tell a good epoch from a bad one: that a ranking of one can be wrong."""
    if select_by == "last":
        return
    told = np.count_nonzero(have_different_labels(lists))
    if not told:
        raise ValueError(
            f"`{argument}` must have a query with documents of different labels, got none in {len(lists)} queries: no "
            "epoch would rank better than another. Pass more queries, or select_by='last'."
        )
    if told < _LEAST_QUERIES:
        warn(
            f"`{argument}` should have at least {_LEAST_QUERIES} queries with documents of different labels, got "
            f"{told}: which epoch ranks these best is chance. Pass more queries, or select_by='last'."
        )


def evaluated(lists: Any, scores: np.ndarray, measures: Sequence[str], by_query: bool = False) -> dict[str, Any]:
    """Returns trec_eval's measures of scores, for several labels of each by LABEL/MEASURE.

    Args:
      lists: The lists, with labels.
      scores: The scores of the documents, in the order of the lists.
      measures: The names of the measures.
      by_query: Whether to return the value of each query in place of means.
    """
    queries = np.array(lists.query_ids.to_pylist(), object)[lists.query_of_document]
    results: dict[str, Any] = {} if by_query else ByMeasure()
    for name in lists.roles.labels:
        prefix = f"{name}/" if len(lists.roles.labels) > 1 else ""
        of_label = evaluate_rows(lists.values(name), scores, queries, measures, by_query=by_query)
        results.update({f"{prefix}{measure}": value for measure, value in of_label.items()})
    return results


def _check_fit(kind: type, given: Mapping[str, Any]) -> None:
    """Checks the arguments of `fit` that are no data."""
    for name, of in (("init_model", kind), ("strategy", tf.distribute.Strategy)):
        _arguments.instance(name, given.get(name), of, optional=True)
    for name, of in (("callbacks", tf.keras.callbacks.Callback), ("further_metrics", tf.keras.metrics.Metric)):
        for each in _arguments.instance(name, given.get(name, ()), Sequence):
            _arguments.instance(name, each, of)
    for name in ("features", "query_features"):
        if given.get(name) is not None:
            _arguments.sequence(name, given[name])
    for name in ("checkpoint_dir", "cache_dir"):
        if not isinstance(given.get(name), (str, os.PathLike, type(None))):
            raise ValueError(f"`{name}` must be a folder or None, got {given[name]!r}.")


def fitting(fit: F) -> F:
    """Decorates `fit`: what `set_params` changed takes effect, unless the training fails and the old model stays."""

    @functools.wraps(fit)
    def decorated(self: Estimator, *args: Any, **kwargs: Any) -> Any:
        check_process()
        _check_fit(type(self), kwargs)
        before = dict(self.__dict__)
        if self._changed is not None:
            self.__dict__.update(self._changed.__dict__, _changed=None)
        try:
            return fit(self, *args, **kwargs)
        except BaseException as error:
            self.__dict__ = before
            if not isinstance(error, KeyboardInterrupt):
                raise
            folder = kwargs.get("checkpoint_dir")
        # Here, so that there is no traceback of Keras.
        kept = " and nothing of it was kept; with `checkpoint_dir`, the same call would resume"
        if folder is not None:
            kept = f"; the same call resumes after the last finished epoch, from {os.fspath(folder)}"
        raise KeyboardInterrupt(f"The training was interrupted{kept}.")

    return cast(F, decorated)


def loss_of(
    owner: str,
    loss: str | tf.keras.losses.Loss,
    options: Mapping[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    kind: type = tf.keras.losses.Loss,
    optional: bool = False,
) -> Any:
    """Returns the loss of the argument `loss` of a constructor.

    Args:
      owner: The name of the class.
      loss: The name of a loss, or a loss.
      options: The further arguments, which must be hyperparameters of the named loss.
      defaults: Its other hyperparameters; None for those of the loss.
      kind: The class of losses.
      optional: Whether the loss may be None.
    """
    if isinstance(loss, str):
        known = losses.hyperparameters(_arguments.choice("loss", loss, losses.NAMES))
        for name in options:
            if name not in known:
                expected = f"an argument of {owner} or a hyperparameter of {loss}, such as {', '.join(known)}"
                raise ValueError(f"`{name}` must be {expected}, got {options[name]!r}.")
        return losses.get(loss, **{**(defaults or {}), **options})
    if options:
        raise ValueError(f"`loss` must be a name to take {sorted(options)[0]!r}, got {loss!r}.")
    return _arguments.instance("loss", loss, kind, optional=optional)


class Estimator(_scikit_learn.ScikitLearn):
    """The base class of the estimators.

    The constructor of a subclass stores its arguments as `_params`, and `fit`, decorated with `fitting`, sets `model_`,
    `history_` and `best_epoch_`, from 1 on. `_state` and `_restore` define what a file contains besides these.
    """

    _params: dict[str, Any]  # of the model after `fit`
    _loss_options: tuple[str, ...]  # the names of the hyperparameters of the loss among these
    _arrays: tuple[str, ...] = ()  # the names of those of `_state`
    _changed: Self | None = None  # has the arguments of the next `fit`, if they are others
    model_: tf.keras.Model
    history_: dict[str, list[float]]
    best_epoch_: int | None

    def _take(self, given: Mapping[str, Any]) -> None:
        """Stores the arguments of the constructor, from its `locals()`, as Python values."""
        options = given["loss_options"]
        others = ("self", "loss_options", "__class__")
        params = {**{name: value for name, value in given.items() if name not in others}, **options}
        self._params = _arguments.plain(params)
        self._loss_options = tuple(options)

    def _check_patience(self, validation: Any) -> None:
        """Warns that a given patience has no effect if there is no validation."""
        default = inspect.signature(type(self)).parameters["patience"].default
        if validation is None and self._params["patience"] not in (None, default):
            message = "`patience` has no effect without `validation` or `validation_fraction`: all epochs are trained."
            warnings.warn(message, stacklevel=4)

    if not TYPE_CHECKING:  # which knows the attributes

        def __getattr__(self, name: str) -> Any:
            """Returns an argument of the constructor, as scikit-learn's estimators do."""
            if name.startswith("_") or name not in (params := self.get_params()):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return params[name]

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self.__dict__.get("_params", ()):
                self.set_params(**{name: value})
            else:
                super().__setattr__(name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the constructor's arguments.

        Args:
          deep: Ignored; scikit-learn's interface has it.
        """
        return dict((self._changed or self)._params)

    def set_params(self, **params: Any) -> Self:
        """Changes arguments of the constructor, for the next `fit`. A fitted model stays as it is.

        Args:
          **params: Arguments by name.

        Returns:
          The estimator.

        Raises:
          ValueError: If an argument is unknown or out of its range.
        """
        changed = type(self)(**{**self.get_params(), **params})
        if hasattr(self, "model_"):
            self._changed = changed
        else:
            self.__dict__.update(changed.__dict__)
        return self

    def __repr__(self) -> str:
        """Returns the constructor call."""
        text = lambda value: json.dumps(value, default=repr)  # noqa: E731  # files have lists in place of tuples
        defaults = {name: text(known.default) for name, known in inspect.signature(type(self)).parameters.items()}
        changed = [f"{name}={each!r}" for name, each in self.get_params().items() if text(each) != defaults.get(name)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _fitted(self) -> tf.keras.Model:
        if not hasattr(self, "model_"):
            raise _scikit_learn.not_fitted()
        check_process()
        return self.model_

    def _exported(self, path: Any) -> tf.keras.Model:
        """Returns the model, and says that its export may take a while."""
        model = self._fitted()
        if self.get_params()["verbose"]:
            print(f"Exporting to {os.fspath(path)}, which may take a minute", flush=True)
        return model

    def _card(self, card: Mapping[str, Any] | None, **details: Any) -> dict[str, Any]:
        """Returns the entries of the model card that the estimator knows, the details and the given entries."""
        training = {**settings_of(self._params), "epochs": self.best_epoch_ or len(self.history_.get("loss", ()))}
        given = _arguments.instance("card", card, Mapping, optional=True)
        if given and (other := [title for title in given if not isinstance(title, str)]):
            raise ValueError(f"`card` must have titles that are texts, got {other[0]!r}.")
        return {"training": training, **details, **(given or {})}

    def score(self, X: Any, y: Any = None) -> float:
        """Returns the mean NDCG, for scikit-learn's searches.

        Args:
          X: The data, as for `evaluate`.
          y: Ignored; scikit-learn's interface has it.

        Returns:
          The mean over queries or users, in [0, 1].

        Raises:
          ValueError: As for `evaluate`.
        """
        result = self.evaluate(X, measures=["ndcg"])  # type: ignore[attr-defined]
        return getattr(result, "means", result)["ndcg"].mean

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Returns what `_restore` needs besides the model, as JSON values and as arrays."""
        raise NotImplementedError

    def _check(self, config: dict[str, Any], content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Raises an error if a file is damaged, before its model takes memory, given the model's configuration."""

    def _restore(self, model: tf.keras.Model, content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Sets `model_` and what the subclass needs, from the results of `_state`."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted estimator to one file, which `load` and `tf.keras.models.load_model` read.

        Args:
          path: The file, which must end in ".keras".

        Raises:
          ValueError: If the path does not end in ".keras", or the estimator is not fitted.
        """
        if not os.fspath(path).endswith(".keras"):
            raise ValueError(f"`path` must end in '.keras', got {os.fspath(path)!r}.")
        self._fitted()
        with _files.replacing(path) as unfinished:
            self._write(unfinished)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads an estimator.

        Args:
          path: A file that `save` wrote.

        Returns:
          The estimator, with its arguments.

        Raises:
          ValueError: If the file is another one, or damaged.
        """
        with _refused_if_damaged(path, f"`{cls.__name__}.save`"):
            with zipfile.ZipFile(path) as file:
                _serialization.check_members(file)
                content = json.loads(file.read(_CONTENT))
                config = json.loads(file.read("config.json"))["config"]  # Keras's
                _serialization.check_sizes(config, file.getinfo(_WEIGHTS).file_size)
                with np.load(io.BytesIO(file.read(_ARRAYS)), allow_pickle=False) as stored:
                    _serialization.check_members(stored.zip)
                    arrays = dict(stored)
            if content["estimator"] != cls.__name__:
                raise ValueError(f"a file of {content['estimator']}")
            if unknown := arrays.keys() - set(cls._arrays):
                raise ValueError(f"unknown arrays {sorted(unknown)}")
            estimator = cls(**_deserialized(content["params"]))
            estimator._check(config, content["state"], arrays)
            check_process()
            model = tf.keras.models.load_model(os.fspath(path), compile=False)
            estimator.history_, estimator.best_epoch_ = content["history"], content["best_epoch"]
            estimator._restore(model, content["state"], arrays)
            if content["changed"] is not None:
                estimator.set_params(**_deserialized(content["changed"]))
        return estimator

    def _write(self, path: str | os.PathLike[str]) -> None:
        state, arrays = self._state()
        content = {
            "estimator": type(self).__name__,
            "params": serialized(self._params),
            "changed": None if self._changed is None else serialized(self._changed._params),
            "history": self.history_,
            "best_epoch": self.best_epoch_,
            "state": state,
        }
        self.model_.save(os.fspath(path))
        archive = io.BytesIO()
        np.savez(archive, **arrays)  # type: ignore[arg-type]
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
            file.writestr(_CONTENT, json.dumps(content, default=str))
            file.writestr(_ARRAYS, archive.getvalue(), zipfile.ZIP_STORED)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the arguments, and the content of the file of `save` for a fitted estimator."""
        requests = {name: value for name, value in self.__dict__.items() if name == "_metadata_request"}
        if not hasattr(self, "model_"):
            return {"params": self._params, "requests": requests}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _FILE
            self._write(path)
            return {"file": path.read_bytes(), "requests": requests}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the estimator of `__getstate__`."""
        self.__dict__.update(state["requests"])
        if "params" in state:
            self.__dict__.update(type(self)(**state["params"]).__dict__)
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / _FILE
            path.write_bytes(state["file"])
            self.__dict__.update(type(self).load(path).__dict__)


# What damaged archives, and their contents, raise.
_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, tf.errors.OutOfRangeError)
_DAMAGES = (*_ARCHIVE, KeyError, TypeError, ValueError, EOFError, ImportError, MemoryError, RecursionError)
# The package of each class, which may need an extra.
_PACKAGES = {"Ranker": "tfr_smooth", "Recommender": "tfr_smooth.recommendation", "TextRanker": "tfr_smooth.text"}


@contextlib.contextmanager
def _refused_if_damaged(path: str | os.PathLike[str], writer: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGES as error:
        if isinstance(error, OSError) and error.filename is not None:  # of opening it, such as a missing file
            raise
        got = f"{os.fspath(path)!r}: {' '.join(str(error).split())}"
        raise ValueError(f"`path` must be a file of {writer}, got {got}") from error


def estimator_class(name: str) -> Any:
    """Returns the class of a name, from its package, which may need an extra."""
    return getattr(importlib.import_module(_PACKAGES[name]), name)


def load(path: str | os.PathLike[str]) -> Any:
    """Reads an estimator of any class, which `save` wrote.

    Args:
      path: The file.

    Returns:
      The `Ranker`, `Recommender` or `TextRanker`.

    Raises:
      ValueError: If the file is another one, or damaged.

    Example:
      >>> import tempfile
      >>> import tfr_smooth
      >>> options = {"members": 1, "hidden": [4], "epochs": 1, "trees": False, "verbose": False}
      >>> ranker = tfr_smooth.Ranker(**options).fit([[0.5], [1.5]], [0, 1], group=[2])
      >>> ranker.save(path := f"{tempfile.mkdtemp()}/ranker.keras")
      >>> type(tfr_smooth.load(path)).__name__
      'Ranker'
    """
    with _refused_if_damaged(path, f"`save` of {', '.join(_PACKAGES)}"):
        with zipfile.ZipFile(path) as file:
            _serialization.check_members(file)
            name = json.loads(file.read(_CONTENT))["estimator"]
        _arguments.choice("estimator", name, _PACKAGES)
    return estimator_class(name).load(path)
