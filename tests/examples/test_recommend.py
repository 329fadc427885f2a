"""The recommender, run from the command line."""

import json

import numpy as np
import pytest

from tests import helpers
from tests.documents import ROOT
from tests.recommendation.groups import likes
from tfr_smooth import recommendation


def run(*arguments):
    return helpers.check_run(str(ROOT / "examples" / "recommend.py"), *arguments)


@pytest.mark.slow
def test_files_of_lists(tmp_path):
    train, test = recommendation.hold_out(recommendation.Interactions(likes()), items=1)
    for name, part in (("train", train), ("test", test)):
        lists = [
            f"{user} {' '.join(map(str, items[items >= 0]))}" for user, items in enumerate(part.padded(np.arange(24)))
        ]
        (tmp_path / f"{name}.txt").write_text("\n".join(line for line in lists if line.count(" ") and line[-1] != " "))
    output = tmp_path / "output"
    flags = [f"--train={tmp_path}/train.txt", f"--test={tmp_path}/test.txt", f"--output_dir={output}", "--dim=4"]
    flags += ["--warm_start_epochs=4", "--epochs=1", "--loss=list_net", "--baselines=popularity ease ials bpr"]
    printed = run(*flags)
    measured = json.loads((output / "metrics.json").read_text())
    assert {"recall_20", "ndcg_10", "ndcg_20", "hit_rate_20", "map", "coverage_20", "baselines"} <= set(measured)
    assert set(measured["baselines"]) == {"popularity", "ease", "ials", "bpr"} and f"Output: {output}" in printed
    loaded = recommendation.Recommender.load(output / "recommender.npz")
    found = recommendation.evaluate(loaded, test, seen=train, measures="recall_20")
    assert found.means["recall_20"].mean == pytest.approx(measured["recall_20"])
    assert json.loads((output / "metrics.json").read_text()) == measured
    for name in ("softmax", "loss", "measures"):
        assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--train=none.txt"], "none.txt"),
        (
            ["--train=x.txt", "--baselines=svd"],
            "--baselines must be some of popularity, ease, ials, bpr, got",
        ),
        (["--train=x.txt", "--least_rating=3"], "--least_rating needs files of ratings"),
    ],
)
def test_errors_are_one_line(flags, message, tmp_path):
    done = helpers.run_python(str(ROOT / "examples" / "recommend.py"), *flags, f"--output_dir={tmp_path}")
    assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1
