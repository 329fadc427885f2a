"""Without the optional packages, the library imports and trains; errors name the extra that installs a missing one."""

import json

import pytest

from tests import helpers
from tfr_smooth import _keras

pytestmark = pytest.mark.slow
OPTIONAL = ["implicit", "keras_hub", "matplotlib", "onnx", "optuna"]
OPTIONAL += ["pytrec_eval", "safetensors", "sklearn", "tabulate", "tensorflow_ranking", "tensorflow_serving"]
OPTIONAL += ["threadpoolctl", "tokenizers", "transformers"]

PROGRAM = """
import importlib, json, sys, warnings

optional, folder = json.loads(sys.argv[1]), sys.argv[2]
sys.modules.update(dict.fromkeys(optional))  # their import fails


class NoPandas:  # PyArrow would take None for pandas.
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, NoPandas())

import numpy as np
import pyarrow as pa
import tfr_smooth
from tfr_smooth import _keras

features = np.random.RandomState(0).randn(8, 5, 3).astype(np.float32)
model = tfr_smooth.models.FeedForwardScorer(hidden=[4])
model.compile(optimizer="adam", loss=tfr_smooth.losses.ListNetLoss(), metrics=[tfr_smooth.metrics.NDCGMetric()])
model.fit({"features": features}, (features[:, :, 0] > 0).astype(np.float32), epochs=2, verbose=0)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    tfr_smooth.serving.export_ranker(model, folder + "/plain", num_features=3)

table = pa.table({"search": [0, 0, 1, 1], "price": [1.0, 2.0, 3.0, 4.0], "label": [0, 1, 0, 1]})
ranker = tfr_smooth.Ranker(members=1, epochs=1, trees=False, verbose=False)
ranker.fit(table, label="label", query="search")
assert ranker._repr_html_() is None
query = tfr_smooth.evaluation.ScoredQuery("q", ["a"], np.array([1]), np.array([0.5]))
calls = {
    "trec_eval": lambda: tfr_smooth.evaluation.trec_eval([query]),
    "experiments": lambda: importlib.import_module("experiments"),
    "onnx": lambda: tfr_smooth.serving.export_onnx(model, folder + "/export.onnx"),
    "text": lambda: importlib.import_module("tfr_smooth.text"),
    "rank": lambda: ranker.rank(table),
    "to_pandas": lambda: tfr_smooth.data.from_table(table, query="search", label="label").to_pandas(),
}
if _keras.IS_KERAS_3:
    from tfr_smooth import text
    calls["encoder"] = lambda: text.load_encoder(folder)
errors = {"export": [str(each.message) for each in warned if "warm-up" in str(each.message)]}
for name, call in calls.items():
    try:
        call()
    except ImportError as error:
        errors[name] = str(error)
print(json.dumps(errors))
"""


def needs(name, packages, extra):
    return f"{name} needs {packages}: pip install 'tfr_smooth[{extra}]'"


def test_the_library_trains_without_optional_packages_and_errors_name_the_extra(tmp_path):
    printed = helpers.check_run("-c", PROGRAM, json.dumps(OPTIONAL), tmp_path)
    (warning,) = (errors := json.loads(printed)).pop("export")
    assert "pip install 'tfr_smooth[serving]'" in warning
    expected = {
        "trec_eval": needs("`trec_eval`", "pytrec_eval-terrier", "evaluation"),
        "experiments": "`experiments` needs matplotlib: pip install '.[experiments]'",
        "onnx": needs("`export_onnx`", "onnx", "onnx"),
        "rank": needs("`rank`", "pandas", "pandas"),
        "to_pandas": needs("`to_pandas`", "pandas", "pandas"),
    }
    if _keras.IS_KERAS_3:
        expected["encoder"] = needs("`load_encoder`", "keras-hub", "text")
    else:
        expected["text"] = "tfr_smooth.text needs Keras 3, as KerasHub does, but TensorFlow uses tf-keras."
    assert errors == expected
    assert (tmp_path / "plain/1/saved_model.pb").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]  # The failed export leaves nothing.
