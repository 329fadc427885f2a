"""Columns of text that an encoder maps to vectors, in `Ranker`."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tests.text.conftest import WORDS, encoded, make
from tfr_smooth.columns import Encoded, TableFeatures

TEXTS = ["wing lift", "heat", "the flow of gas"]


@pytest.fixture(scope="module")
def frame():
    """Titles are relevant if they have the word of the query."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat(np.arange(40), 5), "title": random.choice(WORDS, 200)})
    frame["asked"] = np.repeat(random.choice(WORDS[:4], 40), 5)
    frame["title"] = frame["title"].mask(random.random(200) < 0.4, frame["asked"])
    frame["label"] = (frame["title"] == frame["asked"]).astype(int)
    frame.loc[frame.index[::50], "title"] = None
    return frame


def test_vectors_are_means_of_hidden_states_of_mean_square_1():
    encoder = make()
    found = encoder.embed(tf.constant(TEXTS * 20)).numpy()
    for text, vector in zip(TEXTS, found[:3], strict=True):
        (tokens,) = encoder.tokenize([text])
        hidden = encoder(tf.constant([[2, *tokens, 3]]))[0].numpy()
        mean = hidden.mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.sqrt(np.mean(mean**2)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, np.tile(found[:3], [20, 1]), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_rankers_learn_from_encoders_and_files_and_exports_contain_them(frame, tmp_path):
    kinds = dict.fromkeys(("title", "asked"), make())
    ranker = tfr_smooth.Ranker(kinds=kinds, matches=[("asked", "title")], members=2, verbose=False)
    ranker.fit(frame, label="label", query="query", query_features=["asked"])
    # Equal texts have the cosine 1, and missing ones 0.
    values = {"asked": tf.constant(["wing", "wing"]), "title": tf.constant(["wing", ""])}
    features = pd.DataFrame(ranker.features_(values).numpy(), columns=ranker.features_.feature_columns)
    assert features["asked ~ title"].to_numpy()[:, 1] == pytest.approx([1.0, 0.0], abs=1e-5)
    title = features["title"].to_numpy()
    assert not title[1, :-1].any() and title[:, -1].tolist() == [0.0, 1.0] and np.abs(title[0, :-1]).max() > 0.1
    assert ranker.evaluate(frame, measures=["ndcg"])["ndcg"].mean > 0.9
    scores = ranker.predict(frame)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ranker)).predict(frame), scores)
    ranker.save(tmp_path / "ranker.keras")
    frame[:5].to_pickle(tmp_path / "frame")
    program = (
        "import pandas as pd, tfr_smooth; "
        f"ranker = tfr_smooth.Ranker.load('{tmp_path}/ranker.keras'); "
        f"print(*ranker.predict(pd.read_pickle('{tmp_path}/frame')), ranker.get_params()['kinds'])"
    )
    printed = helpers.check_run("-c", program).split()
    np.testing.assert_allclose(np.array(printed[:5], float), scores[:5], rtol=1e-4, atol=1e-5)
    assert "<Encoder" in printed[6]
    folder = ranker.export(tmp_path / "export")
    ids = {}
    for name, texts in (("asked", frame["asked"][:1].tolist()), ("title", frame["title"][:5].fillna("").tolist())):
        ids[f"{name}_ids"] = encoded(folder / "assets.extra" / f"{name}_tokenizer.json", texts)["input_ids"]
    ids["title_ids"] = ids["title_ids"][np.newaxis]
    assert frame["title"].isna()[0]
    found = tf.saved_model.load(str(folder)).signatures["serving_default"](
        **{name: tf.constant(value) for name, value in ids.items()}
    )
    np.testing.assert_allclose(found["scores"][0], scores[:5], rtol=1e-4, atol=1e-5)
    card = json.loads((folder / "assets.extra" / "model_card.json").read_text())
    assert {each["name"]: each["kind"] for each in card["features"]} == {"asked_ids": "encoded", "title_ids": "encoded"}
    with pytest.raises(
        ValueError, match="must have no column 'title_ids' beside the texts 'title', whose token ids it is"
    ):
        other = frame[:50].assign(title_ids=1.0)
        tfr_smooth.Ranker(kinds={"title": make()}, members=1, epochs=1, verbose=False).fit(
            other, label="label", query="query"
        ).export(tmp_path / "export")


@pytest.mark.slow
def test_a_checkpoint_knows_the_encoder(frame, tmp_path):
    options = {"label": "label", "query": "query", "checkpoint_dir": tmp_path}
    scores = []
    for _ in range(2):
        ranker = tfr_smooth.Ranker(kinds={"title": make(), "asked": "id"}, verbose=False, epochs=1, members=1)
        scores.append(ranker.fit(frame[:50], **options).predict(frame))
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="`settings` must match .* got kinds="):
        ranker.set_params(kinds={"title": make(seed=1), "asked": "id"}).fit(frame[:50], **options)


def test_columns_without_text_or_encoder_are_refused(frame):
    numbers = frame.assign(price=np.arange(200.0))
    with pytest.raises(ValueError, match="column 'price' must have text for the kind 'encoded', got the type double"):
        tfr_smooth.Ranker(kinds={"price": make()}).fit(numbers, label="label", query="query")
    with pytest.raises(ValueError, match=r"`encoders` must be those of the columns \['a'\], got \[\]"):
        TableFeatures([Encoded(name="a", length=2)])
