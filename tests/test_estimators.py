"""What the estimators have in common: arguments, files, pickles, resuming, interruptions and the words about them."""

import functools
import inspect
import io
import itertools
import json
import os
import pickle
import re
import signal
import tempfile
import zipfile
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import sklearn
import tensorflow as tf

import tfr_smooth
from tests.recommendation import groups
from tfr_smooth import _keras, recommendation
from tfr_smooth._estimator import Estimator


class Case(NamedTuple):
    """An estimator with small data.

    Attributes:
      kind: The class.
      settings: Arguments of its constructor, with several epochs, validation and a seed.
      data: The training data.
      other: Other training data.
      fit: Arguments of `fit`.
      altered: Arguments with which the model would score otherwise.
      numbers: The data of `predict`.
      calls: The methods that need a fitted estimator, besides `export` and `save`.
    """

    kind: type
    settings: dict
    data: object
    other: object
    fit: dict
    altered: dict
    numbers: object
    calls: tuple

    def scores(self, estimator):
        """Numbers that depend on all weights."""
        return estimator.predict(self.numbers)


def of_ranker():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat(np.arange(16), 4), "price": random.normal(size=64)})
    frame["color"] = random.choice(["red", "blue"], 64)
    frame["label"] = (frame["price"] + (frame["color"] == "red") > 0.5).astype(int)
    return Case(
        tfr_smooth.Ranker,
        {"loss": "approx_ndcg", "members": 2, "hidden": [4], "epochs": 3, "validation_fraction": 0.25}
        | {"select_by": "ndcg", "verbose": False}
        # Keras 2 does not store the state of dropout.
        | ({} if _keras.IS_KERAS_3 else {"dropout": 0.0}),
        frame,
        frame.assign(label=1 - frame["label"]),
        {"label": "label", "query": "query"},
        {"normalization": "min_max", "members": 3},
        frame,
        ("predict", "rank", "evaluate"),
    )


def of_recommender():
    return Case(
        recommendation.Recommender,
        {"history_items": "sequence", "history_length": 5, "dim": 4, "softmax_epochs": 2, "refit": False}
        | {"verbose": False},
        groups.likes_in_time(0),
        groups.likes_in_time(1),
        {},
        {"temperature": 0.1, "dim": 5, "loss": "soft_ndcg"},
        np.arange(24),
        ("recommend", "evaluate"),
    )


def of_text_ranker():
    if not _keras.IS_KERAS_3:
        pytest.skip("text reranking needs Keras 3")
    from tests.text import conftest as texts
    from tfr_smooth import text

    table = texts.made_up_table(queries=8)
    settings = {"encoder": str(texts.write_checkpoint(tempfile.mkdtemp())), "architecture": "late"}
    return Case(
        text.TextRanker,
        {**settings, **texts.LENGTHS["late"], "epochs": 2, "validation_fraction": 0.25, "verbose": False},
        table,
        table.assign(label=1 - table["label"].clip(upper=1)),
        {},
        {"architecture": "cross", "query_length": 3},
        table,
        ("predict", "rank", "evaluate"),
    )


CASES = {"Ranker": of_ranker, "Recommender": of_recommender, "TextRanker": of_text_ranker}


@pytest.fixture(scope="module")
def case():
    """Of `Ranker`, which shows what all have in common."""
    return of_ranker()


@pytest.fixture(scope="module")
def fitted(case):
    return fit(case)


# `Ranker` in the fast tests and on Keras 2, the others in the slow ones.
EACH = [pytest.param(name, marks=pytest.mark.keras_2 if name == "Ranker" else pytest.mark.slow) for name in CASES]


class Started(Exception):
    pass


class NoStep(tf.keras.callbacks.Callback):
    """Fails if anything is trained."""

    def on_train_batch_begin(self, batch, logs=None):
        raise Started


class Interrupt(tf.keras.callbacks.Callback):
    """Presses Ctrl-C in one epoch of all."""

    def __init__(self, epoch):
        super().__init__()
        self.left = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)
        self.left -= 1


def fit(case, data=None, callbacks=(), checkpoint_dir=None, **changes):
    estimator = case.kind(**{**case.settings, **changes})
    options = {**case.fit, "checkpoint_dir": checkpoint_dir, "callbacks": callbacks}
    return estimator.fit(case.data if data is None else data, **options)


def assert_same(case, found, expected):
    np.testing.assert_array_equal(case.scores(found), case.scores(expected))
    assert found.history_ == expected.history_ and found.best_epoch_ == expected.best_epoch_
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("name", EACH)
def test_arguments_are_those_of_scikit_learn_and_calls_need_a_fit(name, tmp_path):
    case = CASES[name]()
    estimator = case.kind(**case.settings)
    assert isinstance(estimator, Estimator) and estimator.get_params().items() >= case.settings.items()
    assert sklearn.clone(estimator).get_params() == estimator.get_params()
    as_numpy = {
        key: np.array(value) if isinstance(value, list) else np.array([value])[0]
        for key, value in case.settings.items()
    }
    of_numpy = case.kind(**as_numpy)
    assert repr(of_numpy) == repr(estimator)
    assert {type(value).__module__ for value in of_numpy.get_params().values()} == {"builtins"}
    with pytest.raises((TypeError, ValueError), match="unknown_argument"):
        estimator.set_params(unknown_argument=1)
    changed = estimator.set_params(learning_rate=0.5)
    assert changed is estimator and estimator.get_params()["learning_rate"] == 0.5
    for part, is_shown in {"learning_rate=0.5": True, "verbose=False": True, "seed": False}.items():
        assert (part in repr(estimator)) == is_shown
    parameters = inspect.signature(case.kind).parameters.values()
    assert all(parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD) for parameter in parameters)
    for new in (estimator, pickle.loads(pickle.dumps(estimator))):
        assert new.get_params() == estimator.get_params() and not hasattr(new, "model_")
        for method, given in {**dict.fromkeys(case.calls, case.numbers), "export": tmp_path, "save": "a.keras"}.items():
            with pytest.raises(ValueError, match="^`fit` must be called first.$"):
                getattr(new, method)(given)
    with pytest.warns(UserWarning, match="`patience` has no effect without"), pytest.raises(Started):
        fit(case, patience=2, validation_fraction=0.0, callbacks=[NoStep()])


@pytest.mark.parametrize("name", EACH)
def test_a_file_a_pickle_and_a_training_after_ctrl_c_are_the_same(name, tmp_path, request):
    if name == "TextRanker":  # the others train with graphs
        request.getfixturevalue("eagerly")
    case = CASES[name]()
    fitted = fit(case)
    (epochs,) = {len(values) for values in fitted.history_.values()}
    assert "loss" in fitted.history_ and 0 < fitted.best_epoch_ <= epochs
    fitted.save(tmp_path / "a.keras")
    for again in (case.kind.load(tmp_path / "a.keras"), pickle.loads(pickle.dumps(fitted))):
        assert_same(case, again, fitted)
    np.testing.assert_array_equal(case.scores(again.set_params(**case.altered)), case.scores(fitted))
    assert isinstance(tf.keras.models.load_model(tmp_path / "a.keras", compile=False), tf.keras.Model)

    options = {"checkpoint_dir": tmp_path / "lr=[0.1]*"}
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt, match="; the same call resumes after the last finished epoch") as error:
            fit(case, callbacks=[Interrupt(1)], **options)
        assert len(error.traceback) <= 3 and error.value.__context__ is None  # nothing of Keras
    finally:
        signal.signal(signal.SIGINT, handler)
    assert_same(case, fit(case, **options), fitted)
    assert_same(case, fit(case, callbacks=[NoStep()], **options), fitted)  # finished
    with pytest.raises(ValueError, match=r"got data='\w+' \(was '\w+'\)"):
        fit(case, data=case.other, **options)
    with pytest.raises(ValueError, match=r"got learning_rate=0.5 \(was "):
        fit(case, learning_rate=0.5, **options)


@pytest.mark.slow
def test_changed_arguments_are_those_of_the_next_fit_only(case, fitted, tmp_path):
    estimator = pickle.loads(pickle.dumps(fitted)).set_params(**case.altered)
    estimator.save(tmp_path / "a.keras")
    estimator.export(tmp_path / "export", card={"description": "same"})
    for same in (estimator, case.kind.load(tmp_path / "a.keras")):
        np.testing.assert_array_equal(case.scores(same), case.scores(fitted))
        assert same.get_params().items() >= case.altered.items()
    with pytest.raises(ValueError, match="must"):
        estimator.fit(case.data, validation=5, **case.fit)
    np.testing.assert_array_equal(case.scores(estimator), case.scores(fitted))
    other = estimator.fit(case.data, **case.fit)
    assert np.abs(case.scores(other) - case.scores(fitted)).max() > 1e-3


@pytest.mark.slow
def test_options_of_exports_may_be_none_and_inputs_of_wrong_ranks_are_errors(fitted, tmp_path):
    folder = fitted.export(tmp_path, version=None, card=None, serving_default=None)
    assert (folder / "assets.extra" / "model_card.json").is_file()
    with pytest.raises(ValueError, match=r"`path` must be without \[ \] \* \? "):
        fitted.export(tmp_path / "lr=[0.1]")
    for name, signature in tf.saved_model.load(str(folder)).signatures.items():
        specs = signature.structured_input_signature[1]
        right = {each: tf.zeros([size or 1 for size in spec.shape], spec.dtype) for each, spec in specs.items()}
        for wrong in specs:
            for changed in (right[wrong][tf.newaxis], tf.reshape(right[wrong], [-1])[0]):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    signature(**{**right, wrong: changed}), name


def test_the_score_is_the_mean_ndcg(case, fitted):
    assert fitted.score(case.data) == fitted.evaluate(case.data, measures=["ndcg"])["ndcg"].mean > 0.0
    if hasattr(sklearn.utils, "get_tags"):  # scikit-learn 1.6
        assert sklearn.utils.get_tags(fitted).input_tags.allow_nan


def rewritten(path, change, name="estimator.json"):
    """Writes a copy of a file with another content of an entry."""
    other = path.with_name("other.keras")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.namelist():
            content = old.read(entry)
            new.writestr(entry, change(content) if entry == name else content)
    return other


@pytest.mark.keras_2
def test_files_that_are_damaged_or_of_another_class_are_refused(case, fitted, tmp_path):
    fitted.save(tmp_path / "a.keras")
    content = json.loads(zipfile.ZipFile(tmp_path / "a.keras").read("estimator.json"))
    np.savez(arrays := io.BytesIO(), x=np.zeros(3))
    np.savez_compressed(zeros := io.BytesIO(), x=np.zeros(10**7))
    large = {"config": {"members": 10**9}}
    changes = {
        "a file of Other": [lambda _: json.dumps({**content, "estimator": "Other"})],
        "Expecting value": [lambda _: b""],
        "allow_pickle": [lambda _: b"nothing", "estimator.npz"],
        r"unknown arrays \['x'\]": [lambda _: arrays.getvalue(), "estimator.npz"],
        r"x.npy has \d+ bytes that would become 80000128": [lambda _: zeros.getvalue(), "estimator.npz"],
        "estimator.json has .* bytes that would": [lambda _: json.dumps({**content, "history": [0] * 10**7})],
        "its layers have at least 1000000000 weights": [lambda _: json.dumps(large), "config.json"],
    }
    for reason, change in changes.items():
        with pytest.raises(ValueError) as error:
            case.kind.load(rewritten(tmp_path / "a.keras", *change))
        assert str(error.value).startswith(f"`path` must be a file of `{case.kind.__name__}.save`, got ")
        assert re.search(reason, str(error.value)) and "\n" not in str(error.value)
    whole = (tmp_path / "a.keras").read_bytes()
    damaged, (entry, weights) = [whole[:1000]], [whole.rindex(name) - 46 for name in (b"estimator.json", b"model.w")]
    # In an entry: the version, encryption, other methods of compression. The place of all, of one, and a wrong block.
    places = [(entry + 6, 255), (entry + 8, 1), *((entry + 10, method) for method in (12, 14, 99))]
    for place, byte in [*places, (len(whole) - 4, 128), (weights + 44, 9), (whole.index(b"estimator.json") + 14, 7)]:
        damaged.append(whole[:place] + bytes([byte]) + whole[place + 1 :])
    for content, load in itertools.product(damaged, (case.kind.load, tfr_smooth.load)):
        (tmp_path / "b.keras").write_bytes(content)
        with pytest.raises(ValueError, match="`path` must be a file of .*$"):
            load(tmp_path / "b.keras")
    with pytest.raises(FileNotFoundError, match="missing.keras"):
        case.kind.load(tmp_path / "missing.keras")
    with pytest.raises(ValueError, match="`path` must end in '.keras', got 'model'"):
        fitted.save("model")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_says_why_it_cannot_work(case, fitted):
    reader, writer = os.pipe()
    if not (child := os.fork()):
        found = []
        for call in (lambda: fit(case), *(functools.partial(getattr(fitted, name), case.data) for name in case.calls)):
            try:
                call()
            except RuntimeError as error:
                found.append(str(error))
        os.write(writer, json.dumps(found).encode())
        os._exit(0)
    os.waitpid(child, 0)
    found = json.loads(os.read(reader, 1 << 16))
    assert len(found) == 1 + len(case.calls) and all("forked from one that used it" in each for each in found)
