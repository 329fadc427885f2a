"""TensorFlow's saved_model_cli runs every signature of the exported folder."""

import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ALIASES = ["tensorflow/serving/predict", "tensorflow/serving/regress"]
SIGNATURES = ["serving_default", "rank", "predict", "regress", *ALIASES]


def saved_model_cli(*arguments):
    command = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def literal(content):
    """A Python literal with all bytes escaped, as the program splits its arguments at semicolons."""
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in content) + '"'


@pytest.mark.parametrize("signature", SIGNATURES)
def test_run_returns_the_scores_of_keras(signature, exported, protos, tmp_path):
    example, example_list = protos
    mask = exported.mask
    documents = [[example(features=row) for row in rows] for rows in exported.features.tolist()]
    if "predict" in signature:
        lists = [example_list(row[:size]) for row, size in zip(documents, mask.sum(axis=1), strict=True)]
        given, output = [f"--input_exprs=inputs=[{', '.join(map(literal, lists))}]"], "outputs"
        expected = exported.scores(mask=mask)
    elif "regress" in signature:
        flat = [{"features": row} for row in exported.features[0].tolist()]
        given, output = [f"--input_examples=inputs={flat!r}"], "outputs"
        expected = exported.scores()[0]
    else:
        np.savez(tmp_path / "inputs.npz", features=exported.features, mask=mask)
        names = ["features", "mask"] if signature == "rank" else ["features"]
        given = ["--inputs=" + ";".join(f"{name}={tmp_path / 'inputs.npz'}[{name}]" for name in names)]
        output, expected = "scores", exported.scores(mask=mask if signature == "rank" else None)
    saved_model_cli(
        *("run", f"--dir={exported.path}", "--tag_set=serve", f"--signature_def={signature}", f"--outdir={tmp_path}"),
        *given,
    )
    np.testing.assert_allclose(np.load(tmp_path / f"{output}.npy"), expected, rtol=1e-6, atol=1e-6)


def test_show_lists_the_signatures(exported):
    printed = saved_model_cli("show", f"--dir={exported.path}", "--tag_set=serve")
    assert all(f'"{name}"' in printed for name in SIGNATURES), printed
