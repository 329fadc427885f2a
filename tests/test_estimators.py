"""What the estimators have in common: arguments, files, pickles, resuming, interruptions and the words about them."""

import functools
import inspect
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
      changed: An argument with another value.
      data: The training data.
      other: Other training data.
      fit: Arguments of `fit`.
      scores: A function from the fitted estimator to numbers that depend on all weights.
      unfitted: Calls that need a fitted estimator.
      altered: Arguments with which the model would score otherwise.
      options: Optional arguments of `export`.
    """

    kind: type
    settings: dict
    changed: dict
    data: object
    other: object
    fit: dict
    scores: object
    unfitted: dict
    altered: dict
    options: tuple = ("version", "card", "topn")


def of_ranker():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat(np.arange(16), 4), "price": random.normal(size=64)})
    frame["color"] = random.choice(["red", "blue"], 64)
    frame["label"] = (frame["price"] + (frame["color"] == "red") > 0.5).astype(int)
    return Case(
        tfr_smooth.Ranker,
        {
            **{"loss": "approx_ndcg", "members": 2, "hidden": [4], "epochs": 4, "validation_fraction": 0.25},
            **{"select_by": "ndcg", "verbose": False},
        },
        {"learning_rate": 0.5},
        frame,
        frame.assign(label=1 - frame["label"]),
        {"label": "label", "query": "query"},
        lambda ranker: ranker.predict(frame),
        {
            "predict": lambda ranker: ranker.predict(frame),
            "rank": lambda ranker: ranker.rank(frame),
            "evaluate": lambda ranker: ranker.evaluate(frame),
            "export": lambda ranker: ranker.export("/tmp/never"),
        },
        {"normalization": "min_max", "members": 3},
        ("version", "card", "serving_default"),
    )


def of_recommender():
    interactions, other = (recommendation.Interactions(groups.likes(seed)) for seed in (0, 1))
    return Case(
        recommendation.Recommender,
        {"dim": 4, "softmax_epochs": 3, "softmax_batch_size": 8, "epochs": 2, "topn": 5, "verbose": False},
        {"learning_rate": 0.5},
        interactions,
        other,
        {},
        lambda recommender: recommender.predict(np.arange(interactions.num_users)),
        {
            "recommend": lambda recommender: recommender.recommend([0]),
            "evaluate": lambda recommender: recommender.evaluate(interactions),
            "export": lambda recommender: recommender.export("/tmp/never"),
        },
        {"temperature": 0.1, "dim": 5, "loss": "soft_ndcg"},
    )


def of_sequences():
    case = of_recommender()
    settings = {**case.settings, "loss": "smoothi_ndcg", "history_items": "sequence", "history_length": 5}
    return case._replace(settings=settings, data=groups.likes_in_time(0), other=groups.likes_in_time(1))


def of_text_ranker():
    if not _keras.IS_KERAS_3:
        pytest.skip("text reranking needs Keras 3")
    from tests.text import conftest as texts
    from tfr_smooth import text

    table = texts.made_up_table()
    return Case(
        text.TextRanker,
        {
            "encoder": str(texts.write_checkpoint(tempfile.mkdtemp())),
            "architecture": "late",
            **texts.LENGTHS["late"],
            "epochs": 4,
            "validation_fraction": 0.25,
            "verbose": False,
        },
        {"learning_rate": 0.5},
        table,
        table.assign(label=1 - table["label"].clip(upper=1)),
        {},
        lambda ranker: ranker.predict(table),
        {
            "predict": lambda ranker: ranker.predict(table),
            "rank": lambda ranker: ranker.rank(table),
            "evaluate": lambda ranker: ranker.evaluate(table),
            "export": lambda ranker: ranker.export("/tmp/never"),
        },
        {"architecture": "cross", "query_length": 3},
        ("version", "card"),
    )


CASES = {
    "Ranker": of_ranker,
    "Recommender": of_recommender,
    "sequences": of_sequences,
    "TextRanker": of_text_ranker,
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] * (name != "Ranker")) for name in CASES],
)
def case(request):
    return CASES[request.param]()


@pytest.fixture(scope="module")
def fitted(case):
    return fit(case)


def fit(case, data=None, callbacks=(), checkpoint_dir=None, **changes):
    estimator = case.kind(**{**case.settings, **changes})
    options = {**case.fit, "checkpoint_dir": checkpoint_dir, "callbacks": callbacks}
    return estimator.fit(case.data if data is None else data, **options)


def assert_same(case, found, expected):
    np.testing.assert_array_equal(case.scores(found), case.scores(expected))
    assert found.history_ == expected.history_ and found.best_epoch_ == expected.best_epoch_
    assert repr(found) == repr(expected)


def test_arguments_are_those_of_scikit_learn(case):
    estimator = case.kind(**case.settings)
    assert isinstance(estimator, Estimator) and estimator.get_params().items() >= case.settings.items()
    assert sklearn.clone(estimator).get_params() == estimator.get_params()
    changed = estimator.set_params(**case.changed)
    assert changed is estimator and estimator.get_params().items() >= case.changed.items()
    ((name, value),) = case.changed.items()
    assert (
        f"{name}={value!r}" in repr(estimator) and "verbose=False" in repr(estimator) and "seed" not in repr(estimator)
    )
    with pytest.raises((TypeError, ValueError), match="unknown_argument"):
        estimator.set_params(unknown_argument=1)
    parameters = list(inspect.signature(case.kind).parameters.values())
    assert all(parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD) for parameter in parameters)


def test_arguments_of_numpy_are_stored_as_those_of_python(case):
    def as_numpy(value):
        return np.array(value) if isinstance(value, (list, tuple)) else np.array([value])[0]

    settings = {name: as_numpy(value) for name, value in case.settings.items()}
    estimator = case.kind(**settings)
    assert repr(estimator) == repr(case.kind(**case.settings))
    assert {type(value).__module__ for value in estimator.get_params().values()} == {"builtins"}


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
    assert_same(case, other.set_params(**fitted.get_params()).fit(case.data, **case.fit), fitted)  # as the first `fit`


def test_patience_without_validation_warns(case):
    with pytest.warns(UserWarning, match="`patience` has no effect without"):
        fitted = fit(case, patience=2, epochs=1, validation_fraction=0.0)
    assert fitted.best_epoch_ is None


def test_options_of_exports_may_be_none_and_inputs_of_wrong_ranks_are_errors(case, fitted, tmp_path):
    folder = fitted.export(tmp_path, **dict.fromkeys(case.options))
    assert (folder / "assets.extra" / "model_card.json").is_file()
    with pytest.raises(ValueError, match=r"`path` must be without \[ \] \* \? "):
        fitted.export(tmp_path / "lr=[0.1]")
    for name, signature in tf.saved_model.load(str(folder)).signatures.items():
        specs = signature.structured_input_signature[1]
        right = {
            each: tf.zeros([1 if size is None else size for size in spec.shape], spec.dtype)
            for each, spec in specs.items()
        }
        for wrong in specs:
            for changed in (right[wrong][tf.newaxis], tf.reshape(right[wrong], [-1])[0]):
                with pytest.raises(tf.errors.InvalidArgumentError):
                    signature(**{**right, wrong: changed}), name


def test_the_score_is_the_mean_ndcg(case, fitted):
    data = case.data
    if isinstance(data, recommendation.Interactions):  # the items that it was not trained with
        data = recommendation.Interactions(1.0 - data.dense(np.arange(data.num_users)))
    result = fitted.evaluate(data, measures=["ndcg"])
    assert fitted.score(data) == getattr(result, "means", result)["ndcg"].mean > 0.0
    if hasattr(sklearn.utils, "get_tags"):  # scikit-learn 1.6
        assert sklearn.utils.get_tags(fitted).input_tags.allow_nan


def test_an_estimator_that_is_not_fitted_says_so(case, tmp_path):
    calls = {**case.unfitted, "save": lambda estimator: estimator.save(tmp_path / "a.keras")}
    for name, call in calls.items():
        with pytest.raises(ValueError, match="^`fit` must be called first.$"):
            call(case.kind(**case.settings)), name


def test_the_history_has_each_epoch_and_the_best_one(fitted):
    (epochs,) = {len(values) for values in fitted.history_.values()}
    assert "loss" in fitted.history_ and 0 < fitted.best_epoch_ <= epochs


def test_files_and_pickles_restore_everything(case, fitted, tmp_path):
    fitted.save(tmp_path / "a.keras")
    for again in (case.kind.load(tmp_path / "a.keras"), pickle.loads(pickle.dumps(fitted))):
        assert_same(case, again, fitted)
    assert isinstance(tf.keras.models.load_model(tmp_path / "a.keras", compile=False), tf.keras.Model)
    new = pickle.loads(pickle.dumps(case.kind(**case.settings)))
    assert new.get_params() == case.kind(**case.settings).get_params() and not hasattr(new, "model_")


def test_many_models_in_a_process_cause_no_warnings_of_retracing(case, fitted, caplog, monkeypatch):
    monkeypatch.setattr(tf.get_logger(), "propagate", True)
    for _ in range(6):
        case.scores(pickle.loads(pickle.dumps(fitted)))
    assert not [record for record in caplog.records if "retracing" in record.getMessage()]


def rewritten(path, change, name="estimator.json"):
    """Writes a copy of a file with another content of an entry."""
    other = path.with_name("other.keras")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.namelist():
            content = old.read(entry)
            new.writestr(entry, change(content) if entry == name else content)
    return other


def test_files_that_are_damaged_or_of_another_class_are_refused(case, fitted, tmp_path):
    fitted.save(tmp_path / "a.keras")
    content = json.loads(zipfile.ZipFile(tmp_path / "a.keras").read("estimator.json"))
    changes = {
        "a file of Other": lambda _: json.dumps({**content, "estimator": "Other"}),
        "state": lambda _: json.dumps({name: value for name, value in content.items() if name != "state"}),
        "Expecting value": lambda _: b"",
        "recursion": lambda _: b"[" * 200_000,
        "allow_pickle": (lambda _: b"nothing", "estimator.npz"),
        "missing_package": (
            lambda old: json.dumps({**json.loads(old), "module": "missing_package", "registered_name": "no>ne"}),
            "config.json",
        ),
    }
    for reason, change in changes.items():
        with pytest.raises(ValueError) as error:
            case.kind.load(rewritten(tmp_path / "a.keras", *(change if isinstance(change, tuple) else [change])))
        assert str(error.value).startswith(f"`path` must be a file of `{case.kind.__name__}.save`, got ")
        assert re.search(reason, str(error.value)) and "\n" not in str(error.value)
    (tmp_path / "b.keras").write_bytes((tmp_path / "a.keras").read_bytes()[:1000])
    with pytest.raises(ValueError, match="`path` must be a file of"):
        case.kind.load(tmp_path / "b.keras")
    with pytest.raises(ValueError, match="`path` must end in '.keras', got 'model'"):
        fitted.save("model")


class NoStep(tf.keras.callbacks.Callback):
    """Fails if anything is trained."""

    def on_train_batch_begin(self, batch, logs=None):
        raise AssertionError


class Interrupt(tf.keras.callbacks.Callback):
    """Presses Ctrl-C in one epoch of all."""

    def __init__(self, epoch):
        super().__init__()
        self.left = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)
        self.left -= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_says_why_it_cannot_work(case, fitted):
    reader, writer = os.pipe()
    if not (child := os.fork()):
        found = []
        for call in (lambda: fit(case), *(functools.partial(call, fitted) for call in case.unfitted.values())):
            try:
                call()
            except RuntimeError as error:
                found.append(str(error))
        os.write(writer, json.dumps(found).encode())
        os._exit(0)
    os.waitpid(child, 0)
    found = json.loads(os.read(reader, 1 << 16))
    assert len(found) == 1 + len(case.unfitted) and all("forked from one that used it" in each for each in found)


@pytest.mark.parametrize("epoch", [pytest.param(0, marks=pytest.mark.slow), 2, pytest.param(3, marks=pytest.mark.slow)])
def test_after_ctrl_c_the_same_call_ends_like_an_uninterrupted_one(case, fitted, tmp_path, epoch):
    if isinstance(fitted, tfr_smooth.Ranker) and not _keras.IS_KERAS_3:
        pytest.skip("Keras 2 does not store the state of dropout")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt, match="; the same call resumes after the last finished epoch") as error:
            fit(case, checkpoint_dir=tmp_path / "lr=[0.1]*", callbacks=[Interrupt(epoch)])
        assert len(error.traceback) <= 3 and error.value.__context__ is None  # nothing of Keras
    finally:
        signal.signal(signal.SIGINT, handler)
    resumed = fit(case, checkpoint_dir=tmp_path / "lr=[0.1]*")
    assert_same(case, resumed, fitted)
    again = fit(case, checkpoint_dir=tmp_path / "lr=[0.1]*", callbacks=[NoStep()])
    assert_same(case, again, fitted)


def test_a_folder_of_checkpoints_is_of_one_training(case, tmp_path):
    fit(case, checkpoint_dir=tmp_path)
    with pytest.raises(ValueError, match=r"got data='\w+' \(was '\w+'\)"):
        fit(case, data=case.other, checkpoint_dir=tmp_path)
    ((name, value),) = case.changed.items()
    with pytest.raises(ValueError, match=rf"got {name}={value} \(was "):
        fit(case, checkpoint_dir=tmp_path, **case.changed)


def test_arguments_are_documented_in_the_same_words():
    """The first sentences about arguments that mean the same in all estimators are the same."""
    kinds = [each().kind for each in CASES.values()]
    for name in ("strategy", "checkpoint_dir", "callbacks"):
        assert len({first_sentence(kind.fit, name) for kind in kinds}) == 1, name
    assert len({first_sentence(kind, "verbose") for kind in kinds}) == 1


def first_sentence(function, name):
    text = re.search(rf"\n  {name}: (.*?)(?=\n  \w+: |\n\n)", inspect.getdoc(function), re.S)
    return " ".join(text[1].split()).partition(". ")[0]
