"""Matches of two columns: closed forms, a reference in plain Python, and the pairs and kinds that are inferred."""

import collections
import json

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tfr_smooth import data
from tfr_smooth.columns import TableFeatures, Text, column_arrays, infer_columns, matches
from tfr_smooth.columns.learning import checked_table, learn_columns, learn_features
from tfr_smooth.columns.matches import text_pairs
from tfr_smooth.columns.text import words

TEXTS = {"a": "text", "b": "text"}


def learned(frame, kinds=TEXTS, rows=None):
    return TableFeatures(**learn_columns(checked_table(frame), rows, kinds=kinds, matches=[("a", "b")])[0])


def compared(layer, frame):
    """Returns the features of the match."""
    return layer(column_arrays(frame, layer.columns)).numpy()[:, np.array(layer.feature_columns) == "a ~ b"]


def trigrams(texts):
    return [f"<{word}>"[place : place + 3] for word in texts for place in range(len(word))]


def reference(frame, parts_of, terms_of, rows=None):
    """Returns the features of terms in float64, whose weights are learned from the first rows."""
    bags = {name: [collections.Counter(terms_of(parts_of(text or ""))) for text in frame[name]] for name in "ab"}
    learned = {name: zip(frame[name][:rows], bags[name][:rows], strict=True) for name in "ab"}
    texts = {(name, text): bag for name in "ab" for text, bag in learned[name] if text}
    number = collections.Counter(term for bag in texts.values() for term in bag)
    weights = collections.defaultdict(lambda: np.log((1 + len(texts)) / 2) + 1)
    weights.update({term: np.log((1 + len(texts)) / (1 + count)) + 1 for term, count in number.items()})
    features = []
    for first, second in zip(bags["a"], bags["b"], strict=True):
        common = first.keys() & second.keys()
        total = sum(weights[term] for term in common)
        norms = [np.sqrt(sum((bag[term] * weights[term]) ** 2 for term in bag)) for bag in (first, second)]
        cosine = sum(first[term] * second[term] * weights[term] ** 2 for term in common) / (np.prod(norms) or 1.0)
        shares = [
            share
            for bag in (first, second)
            for share in (len(common) / (len(bag) or 1), total / (sum(weights[term] for term in bag) or 1.0))
        ]
        features.append([*shares, cosine, total])
    return np.array(features)


def test_random_texts_have_the_features_of_the_reference():
    random = np.random.default_rng(0)
    known = np.array(["".join(random.choice(list("abcdeéß京"), random.integers(1, 6))) for _ in range(40)])
    frame = pd.DataFrame(
        {name: [" ".join(random.choice(known, random.integers(0, 9))) for _ in range(90)] for name in "ab"}
    )
    frame.loc[::7, "b"] = ""
    split = lambda text: [word.decode() for word in words(tf.constant([text]))[0].numpy()]  # noqa: E731
    found = compared(learned(frame, rows=np.arange(40)), frame)
    expected = [reference(frame, split, terms_of, 40) for terms_of in (list, trigrams)]
    np.testing.assert_allclose(found, np.concatenate(expected, axis=1), rtol=1e-5, atol=1e-6)


def test_random_sets_have_the_features_of_the_reference():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": random.choice(list("uvwx"), 60), "b": ["|".join(random.choice(list("wxyz"), 3)) for _ in range(60)]}
    )
    frame.loc[::9, "a"] = ""
    found = compared(learned(frame, {"a": "id", "b": "set:|"}), frame)
    np.testing.assert_allclose(found, reference(frame, lambda text: text.split("|") if text else [], list), rtol=1e-5)
    for traced in (matches._hashed, matches._Terms.of):  # not for each size, of which TensorFlow warns
        assert traced.experimental_get_tracing_count() <= 2


def test_texts_are_compared_by_words_and_trigrams():
    for one, other, expected in [
        ("CAFÉ मुं", "cafe\u0301 मुं", [1, 1, 1, 1, 1, 2] * 2),
        ("東京", "東　京", [1, 1, 1, 1, 1, 2] * 2),
        ("", "lamp", [0] * 12),
        ("!?", "!?", [0] * 12),
        ("lamp", "lamps", [0, 0, 0, 0, 0, 0, 3 / 4, 3 / 4, 3 / 5, 3 / 5, 3 / np.sqrt(20), 3]),  # a plural
    ]:
        columns = [Text(name=name, length=9, categories=("a",)) for name in "ab"]
        found = compared(TableFeatures(columns, matches=[("a", "b")]), pd.DataFrame({"a": [one], "b": [other]}))[0]
        if expected[:6] == [1, 1, 1, 1, 1, 2]:
            assert found[11] > 0.0
            expected = [*expected[:11], found[11]]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_layer_is_restored_from_json_and_takes_lists():
    frame = pd.DataFrame({"a": ["red lamp", "blue lamp", "", "x"], "b": ["red sofa", "lamp lamp shade", "red", "x y"]})
    layer = learned(frame)
    restored = TableFeatures.from_config(json.loads(json.dumps(layer.get_config())))
    arrays = column_arrays(frame, layer.columns)
    expected = layer(arrays).numpy()
    np.testing.assert_array_equal(restored(arrays), expected)
    lists = restored({name: values.reshape(2, 2) for name, values in arrays.items()})
    np.testing.assert_array_equal(lists, expected.reshape(2, 2, -1))


def test_texts_without_blanks_are_told_from_ids():
    for values, kind in [
        (["{} lamp red", "blue {} sofa"], "text"),
        (["product-{}", "item{}"], "id"),
        (["红色的台灯放在桌子上{}", "蓝色的沙发{}在客厅"], "text"),
        (["โคมไฟสีแดงสำหรับ{}โต๊ะ"], "text"),
    ]:
        texts = [value.format(number) for number in range(120) for value in values]
        assert infer_columns(pd.DataFrame({"x": texts}))[0].kind == kind, values


def test_columns_that_are_matched_are_texts_if_one_has_words():
    for first, second, kinds in [
        (["lamp", "sofa"], ["a lamp that is red", "sofas in blue"], ["text", "text"]),  # a category alone
        ([f"lamp {number}" for number in range(200)], [f"red {number}" for number in range(200)], ["text", "text"]),
        (["u17", "u18"], ["u17", "u19"], ["category", "category"]),  # whole values are compared
    ]:
        layer = learned(pd.DataFrame({"a": first, "b": second}), {})
        assert [column.kind for column in layer.columns] == kinds, first


@pytest.mark.parametrize("convert", [str, int])
def test_ids_and_categories_of_queries_that_documents_sometimes_have_are_compared(convert):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"query": np.repeat(np.arange(300), 6), "author": random.integers(0, 900, 1800)})
    frame["asker"] = frame["author"].to_numpy()[np.arange(1800) // 6 * 6 + 2]
    frame["label"] = (frame["asker"] == frame["author"]).astype(int)
    frame = frame.assign(other=frame["author"] + 1000, color=random.choice(["red", "blue"], 1800), wanted="green")
    slots = random.integers(0, 3, [2, 300])  # equal as often as by chance
    frame["slot"], frame["shelf"] = slots[0].repeat(6).astype(str), random.permutation(slots[1].repeat(6)).astype(str)
    frame[["author", "asker", "other"]] = frame[["author", "asker", "other"]].map(convert)
    kinds = {} if convert is str else {"kinds": dict.fromkeys(["author", "asker", "other"], "id")}
    lists = data.from_table(frame, query="query", label="label")
    layer, _ = learn_features(lists, np.arange(200), find_equal=True, **kinds)
    assert [match.name for match in layer.matches] == ["asker ~ author"]
    found = layer(column_arrays(frame, layer.columns)).numpy()[:, np.array(layer.feature_columns) == "asker ~ author"]
    np.testing.assert_array_equal(found[:, 0], frame["label"])


def test_texts_of_queries_and_documents_with_common_words_are_pairs():
    frame = pd.DataFrame({"query": np.repeat(np.arange(40), 2), "label": [0, 1] * 40})
    frame["search"] = np.repeat(["lamp", "blue sofa"] * 20, 2)
    frame["title"] = ["Red lamp", "A sofa"] * 40
    for change, expected in [
        ({}, [("search", "title")]),
        ({"search": "u17"}, []),  # no word in common
        ({"market": "Red Lamp"}, [("search", "title"), ("market", "title")]),
        ({"brand": ["lamp", "other"] * 40}, [("search", "title")]),  # varies, but is no text of several words
        *(({"search": days, "title": days}, []) for days in ("2024-01-01 00:00:00", "01.01.2024 00:00")),
    ]:
        features = ["search", "title", *change.keys() - {"search", "title"}]
        lists = data.from_table(frame.assign(**change), query="query", label="label", features=features)
        assert text_pairs(lists, {}) == expected, change
        assert text_pairs(lists, {"title": "category"}) == []
