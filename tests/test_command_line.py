"""The command `tfr-smooth`: its flags are the arguments of the estimators, and its results those of their methods."""

import functools
import inspect
import json
import re

import numpy as np
import pandas as pd
import pytest

import tfr_smooth
from tests import helpers
from tests.recommendation.groups import likes
from tfr_smooth import command_line, recommendation

COLUMNS = ["--query=search", "--label=click"]
SMALL = ["--members=1", "--hidden=8", "--epochs=2", "--verbose=false", "--param", "alpha=5"]


def offers(first, last):
    random = np.random.default_rng(first)
    frame = pd.DataFrame({"search": np.repeat(np.arange(first, last), 5)})
    frame["price"] = random.gamma(2.0, 20.0, len(frame)).round(2)
    frame["shop"] = random.choice(["north", "south", "west"], len(frame))
    frame.loc[::7, "price"] = np.nan
    frame["click"] = (frame["price"].fillna(50.0) + 20.0 * (frame["shop"] == "north") < 40.0).astype(int)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    offers(0, 40).to_csv(folder / "train.csv", index=False)
    offers(40, 60).to_parquet(folder / "valid.parquet")
    offers(60, 70).to_json(folder / "new.jsonl", orient="records", lines=True)
    return folder


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def model(folder):
    path = folder / "ranker.keras"
    flags = [f"--validation={folder / 'valid.parquet'}", f"--model={path}"]
    assert command_line.main(["train", str(folder / "train.csv"), *COLUMNS, *SMALL, *flags]) == 0
    return path


def run(capsys, *arguments):
    """Runs the command and returns its status, its output and its errors."""
    capsys.readouterr()
    status = command_line.main([str(argument) for argument in arguments])
    return status, *capsys.readouterr()


def test_train_gives_the_flags_to_the_constructor_and_to_fit(model, folder):
    ranker = tfr_smooth.Ranker.load(model)
    expected = tfr_smooth.Ranker(members=1, hidden=(8,), epochs=2, verbose=False, alpha=5)
    assert repr(ranker).replace("[8]", "(8,)") == repr(expected)
    assert ranker.best_epoch_ is not None and set(ranker.features_.feature_columns) >= {"price", "shop"}


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_score_appends_the_scores_and_ranks_of_each_query(ending, model, folder, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(command_line, "_SCORED", 12)  # several parts, each of whole queries
    status, out, _ = run(capsys, "score", model, folder / "new.jsonl", tmp_path / f"out{ending}", "--names=y,place")
    assert status == 0 and out == f"Wrote {tmp_path / f'out{ending}'}\n"
    scored = {".csv": pd.read_csv, ".parquet": pd.read_parquet}[ending](tmp_path / f"out{ending}")
    frame, ranker = offers(60, 70), tfr_smooth.Ranker.load(model)
    pd.testing.assert_frame_equal(scored[[*frame]], frame, check_dtype=False)
    np.testing.assert_allclose(scored["y"], ranker.predict(frame), rtol=1e-5, atol=1e-6)
    ranked = ranker.rank(frame)
    assert scored.sort_values(["search", "place"])["y"].tolist() == pytest.approx(ranked["score"].tolist(), abs=1e-5)


def test_an_error_leaves_no_unfinished_output(model, folder, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(command_line, "_SCORED", 12)
    (tmp_path / "out.csv").write_text("before")
    predict = tfr_smooth.Ranker.predict

    def predict_once(ranker, table):
        monkeypatch.setattr(tfr_smooth.Ranker, "predict", lambda *_: (_ for _ in ()).throw(OSError("disk")))
        return predict(ranker, table)

    monkeypatch.setattr(tfr_smooth.Ranker, "predict", predict_once)
    status, _, errors = run(capsys, "score", model, folder / "new.jsonl", tmp_path / "out.csv")
    assert status == 2 and errors.startswith("tfr-smooth: error: disk")
    assert (tmp_path / "out.csv").read_text() == "before" and [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_evaluate_prints_the_table_of_the_method(model, folder, capsys):
    table = tfr_smooth.Ranker.load(model).evaluate(offers(40, 60), measures=["ndcg", "P_1"])
    arguments = ["evaluate", model, folder / "valid.parquet", "--measures=ndcg,P_1"]
    assert run(capsys, *arguments)[:2] == (0, f"{table}\n")


def test_export_gives_the_flags_to_the_method(model, capsys, monkeypatch):
    given = {}

    @functools.wraps(tfr_smooth.Ranker.export)  # with its signature
    def export(self, path, **options):
        given.update(path=path, **options)
        return path

    monkeypatch.setattr(tfr_smooth.Ranker, "export", export)
    assert run(capsys, "export", model, "folder", "--format=saved_model", "--param", "version=3")[0] == 0
    assert given == {"path": "folder", "format": "saved_model", "version": 3}


ERRORS = {
    "score nothing.keras a.csv b.csv": "No such file or directory: 'nothing.keras'",
    "score {folder}/train.csv a.csv b.csv": "MODEL must be a file of `tfr-smooth train` or of `save`, got",
    "score {model} {folder}/new.jsonl out.txt": "OUT must end in .csv or .parquet, got 'out.txt'.",
    "score {model} {folder}/new.jsonl {folder}/o.csv --names=shop,rank": "--names must not be columns of the table",
    "score {model} {folder}/bad.jsonl {folder}/o.csv": "bad.jsonl:3: JSON parse error: ",
    "evaluate {model} {folder}/bad.csv": "bad.csv:3: Expected 4 columns, got 2",
    "evaluate {model} {folder}/valid.parquet --measures=ndcg,loss": "`measures` must be",
    "export {model} folder --format=onx": "`format` must be one of 'saved_model', 'onnx', got 'onx'.",
    "train {table} --label=click --model=m.keras": "--query must be the column of queries, got none.",
    "train {table} --query=search --label=clik --model=m.keras": "`label` must be one of .* Did you mean 'click'",
    "train {table} --query=search --label=shop --model=m.keras": "column 'shop' must be numbers or booleans, got",
    "train {table} --query=search --label=click --model=m.h5": "--model must end in '.keras', got 'm.h5'.",
    "train {table} --query=search --label=click": "the following arguments are required: --model",
    "train {table} --model=m.keras --epoch=3": "unknown argument --epoch=3. Did you mean '--epochs' or",
    "train {table} --model=m.keras --epochs=x": "`epochs` must be an integer >= .*, got 'x'.",
    "train {table} --model=m.keras --param alpha": "--param must be NAME=VALUE, got 'alpha'.",
    "train {table} --model=m.keras --estimator=rank": "`--estimator` must be one of .* Did you mean 'ranker'?",
    "trian": "`command` must be one of .* Did you mean 'train'?",
}


@pytest.mark.parametrize("line", ERRORS)
def test_errors_of_users_are_one_line(line, model, folder, capsys):
    (folder / "bad.jsonl").write_text('{"search": 1}\n\n{"search": 2,\n')
    (folder / "bad.csv").write_text("search,price,shop,click\n1,2,north,0\n1,2\n")
    words = line.format(model=model, folder=folder, table=folder / "train.csv").split()
    status, out, errors = run(capsys, *words)
    assert (status, out, errors.count("\n")) == (2, "", 1)
    assert re.match(f"tfr-smooth: error: .*{ERRORS[line]}", errors)


@pytest.mark.parametrize("estimator", [tfr_smooth.Ranker, recommendation.Recommender])
def test_each_plain_argument_is_a_flag_with_its_description(estimator, capsys):
    with pytest.raises(SystemExit) as done:
        run(capsys, "train", f"--estimator={estimator.__name__.lower()}", "--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert done.value.code == 0 and "Seed of the" in shown
    objects = {"network", "user_encoder", "item_encoder", "loss_options"}
    for name in {*inspect.signature(estimator).parameters} - objects:
        assert f"--{name} VALUE" in shown
    for name in ("validation", "checkpoint_dir", "init_model"):
        assert f"--{name} VALUE" in shown


VALUES = [
    ("int | None", "none", None),
    ("int", "3", 3),
    ("int", "3x", "3x"),
    ("float", "1e-3", 1e-3),
    ("bool", "False", False),
    ("bool", "true", True),
    ("str", "none", "none"),
    ("str | None", "none", None),
    ("str | None", "7", "7"),
    ("str | Mapping[str, float] | None", "{'click': 1.0}", {"click": 1.0}),
    ("Sequence[int] | str", "64,32", (64, 32)),
    ("Sequence[int] | str", "64", [64]),
    ("Sequence[int] | str", "wide", "wide"),
    ("Sequence[str] | None", "price,1", ["price", "1"]),
    ("Sequence[tuple[str, str]] | None", "[('a', 'b')]", [("a", "b")]),
]


@pytest.mark.parametrize(("annotation", "text", "expected"), VALUES)
def test_a_text_becomes_a_value_of_the_argument(annotation, text, expected):
    assert command_line._value(annotation, text) == expected


@pytest.mark.slow
def test_recommenders_take_pairs_and_write_the_best_items(capsys, tmp_path):
    users, items = np.nonzero(likes())
    pairs = pd.DataFrame({"who": users, "what": [f"item {item}" for item in items]})
    test = np.random.default_rng(0).random(len(pairs)) < 0.2
    pairs[~test].to_csv(tmp_path / "train.csv", index=False)
    pairs[test].to_csv(tmp_path / "test.csv", index=False)
    columns = ["--user=who", "--item=what"]
    flags = ["--dim=4", "--softmax_epochs=2", "--epochs=1", "--verbose=false", f"--model={tmp_path / 'r.keras'}"]
    command = ["train", tmp_path / "train.csv", "--estimator=recommender", *columns, *flags]
    assert run(capsys, *command)[0] == 0
    assert (
        run(
            capsys,
            "score",
            tmp_path / "r.keras",
            tmp_path / "test.csv",
            tmp_path / "best.csv",
            "--topn=3",
            "--user=who",
        )[0]
        == 0
    )
    best = pd.read_csv(tmp_path / "best.csv")
    recommender = recommendation.Recommender.load(tmp_path / "r.keras")
    asked = pairs[test]["who"].unique()
    expected = recommender.recommend(asked, topn=3)
    assert best["item"].tolist() == [*np.asarray(expected.items).ravel()] and set(best["who"]) == {*asked}
    status, out, errors = run(
        capsys, "evaluate", tmp_path / "r.keras", tmp_path / "test.csv", *columns, "--measures=recall_5"
    )
    assert status == 0 and out.startswith("recall_5 "), errors


@pytest.mark.slow
def test_the_commands_of_a_shell(folder, tmp_path):
    path, flags = tmp_path / "ranker.keras", [f"--checkpoint_dir={tmp_path / 'checkpoints'}", *COLUMNS, *SMALL]
    start = ["-m", "tfr_smooth"]
    for _ in range(2):  # The second call resumes after the last epoch.
        assert f"Wrote {path}" in helpers.check_run(
            *start, "train", str(folder / "train.csv"), f"--model={path}", *flags
        )
    helpers.check_run(*start, "score", str(path), str(folder / "new.jsonl"), str(tmp_path / "out.parquet"))
    assert len(pd.read_parquet(tmp_path / "out.parquet")) == 50
    assert "ndcg " in helpers.check_run(*start, "evaluate", str(path), str(folder / "valid.parquet"))
    assert "/1" in helpers.check_run(*start, "export", str(path), str(tmp_path / "export"))
    assert json.loads((tmp_path / "export" / "1" / "assets.extra" / "model_card.json").read_text())
    done = helpers.run_python(*start, "score", "nothing.keras", "a.csv", "b.csv")
    assert done.returncode == 2 and "Traceback" not in done.stderr
