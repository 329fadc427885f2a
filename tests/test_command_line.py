"""The command `tfr-smooth`: its flags are the arguments of the estimators, and its results those of their methods."""

import decimal
import inspect
import json
import os
import re
import shlex
import signal
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import tfr_smooth
from tests import helpers
from tfr_smooth import command_line
from tfr_smooth.data.reading import file_formats
from tfr_smooth.ranker.training import RankerTraining

COLUMNS = ["--query=search", "--label=click", "--weight=trust"]
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
    # Weights of the training are needed nowhere else.
    offers(0, 40).assign(trust=0.5).to_csv(folder / "train.csv", index=False)
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


@pytest.fixture(scope="module")
def ranker(model):
    return tfr_smooth.Ranker.load(model)


def run(capsys, *arguments):
    """Runs the command and returns its status, its output and its errors."""
    capsys.readouterr()
    status = command_line.main([str(argument) for argument in arguments])
    return status, *capsys.readouterr()


def test_train_gives_the_flags_to_the_constructor_and_to_fit(ranker):
    expected = tfr_smooth.Ranker(members=1, hidden=(8,), epochs=2, verbose=False, alpha=5)
    assert repr(ranker).replace("[8]", "(8,)") == repr(expected)
    assert ranker.best_epoch_ is not None and set(ranker.features_.feature_columns) >= {"price", "shop"}


def test_score_appends_ranks_and_evaluate_prints_a_table(model, ranker, folder, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(file_formats, "_BLOCK_BYTES", 400)
    monkeypatch.setattr(command_line, "_ROWS", 7)
    done = run(capsys, "score", model, folder / "new.jsonl", tmp_path / "out.csv", "--names=y,place")
    assert done[:2] == (0, f"Wrote {tmp_path / 'out.csv'}\n")
    scored, frame = pd.read_csv(tmp_path / "out.csv"), offers(60, 70)
    pd.testing.assert_frame_equal(scored[[*frame]], frame, check_dtype=False)
    np.testing.assert_allclose(scored["y"], ranker.predict(frame), rtol=1e-5, atol=1e-6)
    ranked = ranker.rank(frame)
    assert scored.sort_values(["search", "place"])["y"].tolist() == pytest.approx(ranked["score"].tolist(), abs=1e-5)
    table = ranker.evaluate(offers(40, 60), measures=["ndcg", "P_1"])
    done = run(capsys, "evaluate", model, folder / "valid.parquet", "--measures=ndcg,P_1")
    assert done[:2] == (0, f"{table}\n")


ERRORS = {
    "score nothing.keras a.csv b.csv": "No such file or directory: 'nothing.keras'",
    "score {folder}/train.csv a.csv b.csv": "MODEL must be a file of `save` of Ranker, Recommender, TextRanker, got",
    "score {model} {folder}/new.jsonl out.txt": "OUT must end in .csv or .parquet, got 'out.txt'.",
    "score {model} {folder}/new.jsonl nothing/out.csv": "OUT must be a file in a folder that can be written, got",
    "score {model} {folder}/*.parquet {folder}/link.parquet": "OUT must not be a file that is read, got",
    "score {model} {folder}/new.jsonl {folder}/o.csv --names=a,a": "--names must be .* got 'a,a'",
    "score {model} {folder}/tags.parquet {folder}/o.csv": "OUT must be a Parquet file for column 'tags'",
    "score {model} {folder}/bad.jsonl {folder}/o.csv": "bad.jsonl:3: JSON parse error: ",
    "train {table} --query=search --label=click": "the following arguments are required: --model",
    "train {table} --model=m.keras --epoch=3": "unknown argument --epoch=3. Did you mean '--epochs' or",
    "train {table} --model=m.keras --epochs=x": "`epochs` must be an integer >= .*, got 'x'.",
    "train {table} --model=m.keras --types={{'shop':'word'}}": "`types.'shop'.` must be 'number', .* got 'word'",
    "train {table} --model=m.keras --param alpha": "--param must be NAME=VALUE, got 'alpha'.",
    "trian": "`command` must be one of .* Did you mean 'train'?",
}


def test_errors_of_users_are_one_line(model, folder, capsys, monkeypatch):
    (folder / "bad.jsonl").write_text('{"search": 1}\n\n{"search": 2,\n')
    offers(0, 1).assign(tags=[["a"]] * 5).to_parquet(folder / "tags.parquet")
    (folder / "link.parquet").symlink_to(folder / "valid.parquet")
    monkeypatch.setattr(RankerTraining, "learn", lambda self: pytest.fail("The training began before the error."))
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    for line, message in ERRORS.items():
        words = line.format(model=model, folder=folder, table=folder / "train.csv").split()
        status, out, errors = run(capsys, *words)
        assert (status, out, errors.count("\n")) == (2, "", 1), line
        assert re.match(f"tfr-smooth: error: .*{message}", errors), line
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


CELLS = ["007", "67.89100", ".142857142857", "1e3", "", '"', "a,b", "NA", " x", "two\nlines", "100000000000000000001"]


@pytest.mark.parametrize(("ending", "together"), [(".csv", False), (".parquet", True)])
def test_score_keeps_rows_columns_and_cells_of_text_files(ending, together, model, ranker, capsys, tmp_path):
    frame = pd.DataFrame({"note": CELLS, "price": ["2.50", "3", "", "1e1", "007", "+8", ".5", "3.0", "4", "5", "6"]})
    frame["search"] = [7] * 5 + [3] * 6 if together else [7, 3] * 5 + [7]
    frame["shop"] = ["north", "south"] * 5 + ["west"]
    frame.astype(str).to_csv(tmp_path / "new.csv", index=False)
    status, _, errors = run(capsys, "score", model, tmp_path / "new.csv", tmp_path / f"out{ending}")
    assert status == 0, errors
    path = tmp_path / f"out{ending}"
    scored = pd.read_csv(path, dtype=str, na_filter=False) if ending == ".csv" else pd.read_parquet(path)
    pd.testing.assert_frame_equal(scored[[*frame]], frame.astype(str), check_dtype=False)
    assert [*scored] == [*frame, "score", "rank"]
    expected = ranker.predict(frame.assign(price=pd.to_numeric(frame["price"])))
    np.testing.assert_allclose(scored["score"].astype(float), expected, rtol=1e-5)
    ranks = pd.Series(-expected).groupby(frame["search"]).rank(method="first").astype(int)
    assert scored["rank"].astype(int).tolist() == ranks.tolist()
    if ending == ".csv":  # also the quotes
        before, after = ((tmp_path / name).read_text().splitlines() for name in ("new.csv", "out.csv"))
        assert all(new.startswith(f"{old},") or "two" in new for old, new in zip(before, after, strict=True))


def test_score_keeps_types_and_values_of_parquet_files(model, ranker, capsys, tmp_path):
    frame = offers(0, 40)
    frame["id"] = np.where(np.arange(200) % 3, 100000001.0 + np.arange(200), np.nan)
    frame["day"] = pd.Timestamp("2026-01-05 10:00:25.123456", tz="Europe/Paris")
    frame["tags"] = [["a", str(number)] for number in range(200)]
    frame["long"] = [decimal.Decimal(10**20 + number) for number in range(200)]
    table = pa.Table.from_pandas(frame.sample(frac=1.0, random_state=0)[frame.columns[::-1]])
    parquet.write_table(table, tmp_path / "new.parquet", row_group_size=30)
    assert run(capsys, "score", model, tmp_path / "new.parquet", tmp_path / "out.parquet")[0] == 0
    scored = parquet.read_table(tmp_path / "out.parquet")
    assert scored.drop_columns(["score", "rank"]).equals(table)
    np.testing.assert_allclose(scored["score"].to_numpy(), ranker.predict(table), rtol=1e-5, atol=1e-6)
    assert scored.to_pandas().index.tolist() == table.to_pandas().index.tolist()


@pytest.mark.slow
def test_flags_say_how_values_are_written(folder, capsys, tmp_path):
    frame = offers(0, 40).assign(zip=[["123", "1e3", "77"][row % 3] for row in range(200)], trust=0.5)
    frame["day"] = pd.Timestamp("2026-01-05") + pd.to_timedelta(np.arange(200) % 31, unit="D")
    frame["shop"] = frame["shop"].replace({"south": "süd", "west": None})
    frame.to_parquet(tmp_path / "plain.parquet")
    german = frame.assign(day=frame["day"].dt.strftime("%d.%m.%Y"), shop=frame["shop"].fillna("?"))
    german.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    flags = ["--nulls=?", "--delimiter=;", "--decimal=,", "--encoding=cp1252"]
    flags.append("--types={'zip': 'text', 'day': 'date:%d.%m.%Y'}")
    found = []
    for name, written in (("plain.parquet", []), ("german.csv", flags)):
        command = ["train", tmp_path / name, f"--model={tmp_path / 'm.keras'}", *COLUMNS, *SMALL, *written]
        status, measures, errors = run(capsys, *command, f"--validation={tmp_path / name}")
        assert status == 0 and "ndcg " in measures, errors
        status, _, errors = run(capsys, "score", tmp_path / "m.keras", tmp_path / name, tmp_path / "out.csv", *written)
        assert status == 0, errors
        options = {"sep": ";", "decimal": ",", "encoding": "cp1252"} if written else {}
        scored = pd.read_csv(tmp_path / "out.csv", **options)
        found.append((measures, scored[["score", "rank"]].to_numpy().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("by_signal", [False, True])
def test_an_unfinished_score_leaves_nothing_but_what_was_there(by_signal, model, folder, capsys, monkeypatch, tmp_path):
    (tmp_path / "out.csv").write_text("before")

    def interrupted(*_):
        assert sum(path.name.startswith(".unfinished") for path in tmp_path.iterdir()) == 1
        if by_signal:
            os.kill(os.getpid(), signal.SIGTERM)
        raise OSError("disk")

    monkeypatch.setattr(command_line, "_cells", interrupted)
    monkeypatch.setattr(sys, "argv", ["tfr-smooth", "score", str(model), f"{folder}/new.jsonl", f"{tmp_path}/out.csv"])
    before = signal.getsignal(signal.SIGTERM)
    try:
        status = command_line.main()
    except SystemExit as done:
        status = done.code
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == (143 if by_signal else 2)
    assert by_signal or capsys.readouterr().err.startswith("tfr-smooth: error: disk")
    assert (tmp_path / "out.csv").read_text() == "before" and [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_hints_are_flags_that_a_shell_takes(capsys, tmp_path):
    frame = offers(0, 40).assign(trust=1)
    price = frame.pop("price").fillna(1).astype(str).str.replace(".", ",")
    frame["day's"] = (pd.Timestamp("2026-01-05") + pd.to_timedelta(np.arange(200) % 31, unit="D")).strftime("%d.%m.%Y")
    frame["price"] = np.where(np.arange(200) % 9, price, "-")
    frame.to_csv(tmp_path / "offers.csv", index=False, sep=";")
    command = ["train", tmp_path / "offers.csv", f"--model={tmp_path / 'm.keras'}", "--delimiter=;", *COLUMNS, *SMALL]
    with pytest.warns(UserWarning, match="may mean something else") as told:
        run(capsys, *command)
    text = command_line._with_flags(str(told[0].message))
    assert "`--kinds` of a text" in text and "readers" not in text
    flags = [each for word in re.findall(r"--\w+='.*?'(?=[ :;.])", text) for each in shlex.split(word)]
    assert flags == ['--kinds={"day\'s": "date:%d.%m.%Y"}', "--nulls=-", "--decimal=,"]
    assert run(capsys, *command, *flags)[0] == 0  # without a warning
    kinds = {column.name: column.kind for column in tfr_smooth.Ranker.load(tmp_path / "m.keras").columns_}
    assert (kinds["day's"], kinds["price"]) == ("date", "number")


def test_each_plain_argument_is_a_flag_with_its_description(capsys):
    with pytest.raises(SystemExit) as done:
        run(capsys, "train", "--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert done.value.code == 0 and "Seed of the" in shown
    names = {*inspect.signature(tfr_smooth.Ranker).parameters} - {"network", "loss_options"}
    for name in names | {"validation", "checkpoint_dir", "init_model"}:
        assert f"--{name} VALUE" in shown


def test_a_text_becomes_a_value_of_the_argument():
    for annotation, text, expected in (
        ("int | None", "none", None),
        ("float", "1e-3", 1e-3),
        ("bool", "False", False),
        ("str", "none", "none"),
        ("str | Mapping[str, float] | None", "{'click': 1.0}", {"click": 1.0}),
        ("Sequence[int] | str", "64", [64]),
        ("Sequence[int] | str", "wide", "wide"),
        ("Sequence[str] | None", "price,1", ["price", "1"]),
    ):
        assert command_line._value(annotation, text) == expected, (annotation, text)


@pytest.mark.slow
def test_the_commands_of_a_shell(folder, capsys, tmp_path):
    path, flags = tmp_path / "ranker.keras", [*COLUMNS, *SMALL, "--verbose=true"]
    flags.append(f"--checkpoint_dir={tmp_path / 'checkpoints'}")
    for _ in range(2):  # The second call resumes after the last epoch.
        assert f"Wrote {path}" in run(capsys, "train", folder / "train.csv", f"--model={path}", *flags)[1]
    flags = ["--format=saved_model", "--param", "version=3"]
    printed = f"Exporting to {tmp_path}/export, which may take a minute\nWrote {tmp_path}/export/3\n"
    assert run(capsys, "export", path, tmp_path / "export", *flags)[1] == printed
    assert json.loads((tmp_path / "export" / "3" / "assets.extra" / "model_card.json").read_text())
    helpers.check_run("-m", "tfr_smooth", "score", path, folder / "new.jsonl", tmp_path / "out.parquet")
    assert len(pd.read_parquet(tmp_path / "out.parquet")) == 50
    # No log of TensorFlow.
    done = helpers.run_python("-m", "tfr_smooth", "score", "nothing.keras", "a.csv", "b.csv", TF_CPP_MIN_LOG_LEVEL=None)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert helpers.run_python("-c", "import tfr_smooth", TF_CPP_MIN_LOG_LEVEL="0").stderr != ""
