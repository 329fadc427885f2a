"""Words of texts: the standard's normalization, and the same words in each form of a text."""

import re
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from tfr_smooth.columns.text import NUMBERS, Text, words

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
# Default_Ignorable_Code_Point, other than format characters.
IGNORABLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")
SENTENCES = {
    "Latin": "Die Straße nach Málaga kostet fünf Złoty hoặc đồng",
    "Turkish": "İstanbul'da ılık ığdır IĞDIR",
    "Greek": "Ο Σίσυφος ΌΠΩΣ ᾄδει τῆς ὁδοῦ",
    "Arabic": "السَّلامُ عَلَيْكُم یک کتاب",
    "Devanagari": "हिन्दी में क़लम की क़ीमत",
    "Tamil": "தமிழ் மொழி கொடுக்கிறது",
    "Thai": "ภาษาไทย น้ำผึ้ง",
    "Khmer": "ភាសាខ្មែរ សៀវភៅ",
    "Korean": "한국어 책",
    "Kana": "ガラス ひらがな ｶﾞﾗｽ",
    "Cherokee": "ᏣᎳᎩ ꮳꮃꭹ",
}


def words_of(texts):
    return [[word.decode() for word in row] for row in words(tf.constant(texts)).to_list()]


def reference(text):
    """Unicode's compatibility caseless matching (D146), with the exceptions of `normalized`."""
    text = IGNORABLE.sub("", re.sub("[\u200b™℠]", " ", text))
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Me"))
    text = "".join(" " if unicodedata.normalize("NFKD", c)[0] == " " else c for c in text)
    for _ in range(2):
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    text = text.replace("ı", "i").replace("i\u0307", "i")
    spaced = (f" {c} " if unicodedata.name(c, "").startswith("CJK UNIFIED IDEOGRAPH") else c for c in text)
    return "".join(c if unicodedata.category(c)[0] in "LMN " else " " for c in "".join(spaced)).split()


@pytest.mark.skipif(unicodedata.unidata_version > "14.0.0", reason="has characters that the table does not have")
@pytest.mark.parametrize("around", ["x{}Y", pytest.param("{0} {0}\u0301{0}", marks=pytest.mark.slow)])
def test_each_character_is_normalized_as_the_standard_says(around):
    characters = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")]
    texts = [around.format(character) for character in characters]
    pairs = zip(texts, words_of(texts), strict=True)
    assert [(text, actual) for text, actual in pairs if actual != reference(text)] == []


def test_marks_in_any_order_and_all_forms_of_a_text_give_the_same_words():
    random = np.random.RandomState(0)
    # Letters with marks of many classes; the iota subscript, letters of Hangul, joiners, separators, ideographs.
    pool = "aiIİıéßἄᾳΣ한각가학ก้ำक़क़்שׁשּꙐ\u0301\u0307\u0315\u0323\u0327\u0334\u0345\u05b0\u05bc\u064b\u0651\u093c\u094d"
    pool += "\u200d\u00ad\ufe0f  -.1²½ﬁＡｶﾞ漢豈𠀀"
    texts = ["".join(random.choice(list(pool), random.randint(1, 12))) for _ in range(5000)]
    expected = [reference(text) for text in texts]
    assert words_of(texts) == expected
    for form in FORMS[:2]:
        assert words_of([unicodedata.normalize(form, text) for text in texts]) == expected


def test_words_of_all_scripts_stay_whole_and_are_the_same_in_each_form_and_case():
    for script, text in SENTENCES.items():
        assert len(reference(text)) == len(text.replace("'", " ").split())
        variants = [unicodedata.normalize(form, text) for form in FORMS]
        variants += [text.upper(), text.lower(), text.casefold(), text.replace(" ", " ... ")]
        assert words_of(variants) == [reference(text)] * len(variants), script


def test_words():
    assert words_of(["a\u0301", "\u0323b"]) == [["a\u0301"], ["\u0323b"]]  # marks of two texts are not mixed
    for text, expected in [
        ("", []),
        (" \t\n\u3000", []),
        ("wi-fi_6, 5,5 O'Brien", ["wi", "fi", "6", "5", "5", "o", "brien"]),
        ("m² ½ Ⅷ ㎏ ﬁn ＡＢ", ["m2", "1", "2", "viii", "kg", "fin", "ab"]),
        ("İI ıi Iİ", ["ii", "ii", "ii"]),
        ("co\u00adop ❤\ufe0f 1\ufe0f\u20e3 می\u200cخواهم", ["coop", "1", "میخواهم"]),
        ("ไทย\u200bน้ำ", ["ไทย", "น\u0e49\u0e4dา"]),
        ("Nike™ don´t", ["nike", "don", "t"]),
        ("東京タワー, 豈𠀀2", ["東", "京", "タワー", "豈", "𠀀", "2"]),
        (b"a\xff\xfeb \xc3", ["a", "b"]),
        (b"\xed\xa0\x80x\x00y", ["x", "y"]),
    ]:
        assert words_of([text, "x"]) == [expected, ["x"]]


COUNTED = {  # the characters, and those of each class
    "": [0, 0, 0, 0, 0],
    "Is it 5 or 12?": [14, 3, 1, 1, 1],
    "WOW!! (Really？)": [15, 0, 4, 5, 1],
    "Élan ٣ été": [10, 1, 1, 0, 0],
    b"A\xff\n7?": [4, 1, 1, 1, 1],  # no UTF-8, which is no character
}


@pytest.mark.parametrize("names", [[*NUMBERS], ["questions", "digits"]])
def test_numbers_of_texts_follow_the_codes(names):
    column = Text(name="title", categories=("wow",), length=2, numbers=names)
    texts = tf.constant([[text if isinstance(text, bytes) else text.encode() for text in COUNTED]] * 2)
    found = column.features(column.prepare(texts), column.resource())
    expected = np.log1p(np.array([*COUNTED.values()]))[:, [[*NUMBERS].index(name) for name in names]]
    assert column.codes == [2, 3] and column.width == found.shape[-1] == 2 + len(names)
    np.testing.assert_allclose(found[..., 2:], np.stack([expected] * 2), rtol=1e-6)
    again = Text.from_config(column.get_config())
    np.testing.assert_array_equal(again.features(again.prepare(texts), again.resource()), found)


def test_a_saved_model_gives_the_same_words_and_has_the_table_once(tmp_path):
    module = tf.Module()
    module.of_columns = tf.function(
        lambda one, two, three: tf.concat([words(texts) for texts in (one, two, three)], axis=1).to_tensor(),
        input_signature=[tf.TensorSpec([None], tf.string)] * 3,
    )
    tf.saved_model.save(module, str(tmp_path))
    texts = tf.constant(list(SENTENCES.values()))
    expected = tf.concat([words(texts)] * 3, axis=1).to_tensor()
    assert np.array_equal(tf.saved_model.load(str(tmp_path)).of_columns(texts, texts, texts), expected)
    assert (tmp_path / "saved_model.pb").stat().st_size < 5e5
