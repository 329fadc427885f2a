"""The training script, run from the command line."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

import tfr_smooth
from tests import helpers
from tests.documents import ROOT
from tfr_smooth import data, evaluation, models

MEASURES = ["ndcg", "ndcg_cut_1", "ndcg_cut_5", "ndcg_cut_10", "P_1", "P_5", "P_10", "map"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    return data.write_synthetic_letor(folder, num_queries=(60, 20, 20), num_features=16)


PAPER = ("--recipe=paper", "--hidden=16", "--batch_size=16", "--learning_rate=0.01")


def command(files, output, *arguments, recipe=PAPER):
    given = [f"--{name}={path}" for name, path in files.items()]
    program = [sys.executable, str(ROOT / "examples" / "train_letor.py"), f"--output_dir={output}"]
    return [*program, *given, *recipe, *arguments]


def run(files, output, *arguments, **options):
    return helpers.run_python(*command(files, output, *arguments, **options)[1:])


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    output = tmp_path_factory.mktemp("output") / "run"
    done = run(files, output, "--epochs=4")
    assert done.returncode == 0, done.stderr
    return output, done.stdout


def test_progress_is_printed(finished):
    _, printed = finished
    lines = printed.splitlines()
    assert lines[0].startswith(" train: 60 queries") and lines[2].startswith("  test: 20 queries")
    assert lines[3] == "Compiling the first step ..."
    for epoch in range(1, 5):
        assert lines[3 + epoch].startswith(f"Epoch {epoch}/4: loss 0.") and "val_smoothi_ndcg 0." in lines[3 + epoch]
    assert lines[4].endswith(" left") and lines[7].endswith(", done")
    assert lines[8].startswith("Best epoch: ") and "test: ndcg 0." in lines[10] and len(lines) == 12


def test_all_output_files_are_written(finished):
    output, _ = finished
    expected = ["best.keras", "curves.png", "export", "metrics.json", "test.run", "training"]
    assert sorted(path.name for path in output.iterdir()) == expected
    assert (output / "curves.png").read_bytes().startswith(b"\x89PNG")
    with open(output / "training" / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"]
    assert set(rows[0]) == {"epoch", "loss", "val_ndcg", "val_smoothi_ndcg"}
    assert all(0.0 < float(row["val_smoothi_ndcg"]) < 1.0 for row in rows)


def test_metrics_are_those_of_the_run_file(finished, files):
    output, _ = finished
    metrics = json.loads((output / "metrics.json").read_text())
    assert list(metrics) == ["valid", "test"] and all(list(part) == MEASURES for part in metrics.values())
    scores = evaluation.read_run(output / "test.run")
    queries, empty = [], 0
    for inputs, labels in data.read_letor(str(files["test"]), batch_size=1, ids=True):
        query = inputs["query_id"][0].numpy().decode()
        documents = [name.decode() for name in inputs["doc_id"][0].numpy()]
        assert sorted(scores[query]) == sorted(documents)
        empty += labels.numpy().max() == 0
        values = np.array([scores[query][name] for name in documents])
        queries.append(evaluation.ScoredQuery(query, documents, labels[0].numpy(), values))
    assert empty > 0 and len(queries) == 20
    again = evaluation.trec_eval(queries)
    assert {name: pytest.approx(value, abs=1e-9) for name, value in again.items()} == metrics["test"]


@pytest.mark.slow
def test_model_and_export_return_the_scores_of_the_run_file(finished, files):
    output, _ = finished
    model = tf.keras.models.load_model(output / "best.keras")
    exported = tf.saved_model.load(str(output / "export" / "1"))
    rank = exported.signatures["rank"]
    written = evaluation.read_run(output / "test.run")
    for inputs, _ in data.read_letor(str(files["test"]), batch_size=7, ids=True):
        ours = model(inputs, training=False).numpy()
        served = rank(features=inputs["features"], mask=inputs["mask"])["scores"].numpy()
        np.testing.assert_allclose(served, ours, rtol=1e-5, atol=1e-5)
        assert (served[~inputs["mask"].numpy()] == models.PADDING_SCORE).all()
        for row, query in enumerate(inputs["query_id"].numpy()):
            for column, document in enumerate(inputs["doc_id"].numpy()[row]):
                if document:
                    score = written[query.decode()][document.decode()]
                    assert ours[row, column] == pytest.approx(score, rel=1e-4, abs=1e-4)


@pytest.mark.slow
def test_model_card_has_data_loss_and_metrics(finished, files):
    output, _ = finished
    card = json.loads((output / "export" / "1" / "assets.extra" / "model_card.json").read_text())
    assert card["metrics"] == json.loads((output / "metrics.json").read_text())
    assert card["loss"]["class"] == "SmoothINDCGLoss"
    assert card["data"]["train"] == str(files["train"]) and card["data"]["queries"] == 60


@pytest.mark.slow
def test_the_default_recipe_trains_members_and_resumes(files, tmp_path):
    for epochs in (1, 2):
        done = run(files, tmp_path, "--members=2", "--hidden=8", f"--epochs={epochs}", recipe=[])
        assert done.returncode == 0, done.stderr
    assert done.stdout.count("Resuming after 1 finished epochs") == 1
    params = tfr_smooth.Ranker.load(tmp_path / "best.keras").get_params()
    assert params == {**tfr_smooth.Ranker(hidden=[8], members=2, epochs=2).get_params(), "alpha": 10.0}
    rank = tf.saved_model.load(str(tmp_path / "export" / "2")).signatures["rank"]
    ranker = tfr_smooth.Ranker.load(tmp_path / "best.keras")
    for inputs, _ in data.read_letor(str(files["test"]), batch_size=7):
        mask = inputs["mask"].numpy()
        served = rank(features=inputs["features"], mask=inputs["mask"])["scores"].numpy()
        np.testing.assert_allclose(served[mask], ranker.predict(inputs["features"].numpy()[mask]), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_with_the_metrics_of_an_uninterrupted_one(finished, files, tmp_path):
    output, _ = finished
    process = subprocess.Popen(command(files, tmp_path, "--epochs=4"), stdout=subprocess.DEVNULL, cwd=ROOT)
    deadline = time.time() + 300
    while not (tmp_path / "training" / "ckpt-2.index").exists():
        assert time.time() < deadline and process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    resumed = run(files, tmp_path, "--epochs=4")
    assert resumed.returncode == 0, resumed.stderr
    assert "Resuming after " in resumed.stdout and "Epoch 1/4" not in resumed.stdout
    metrics, expected = (json.loads((folder / "metrics.json").read_text()) for folder in (tmp_path, output))
    for part in ("valid", "test"):
        assert metrics[part] == {name: pytest.approx(value, abs=1e-6) for name, value in expected[part].items()}
    changed = run(files, tmp_path, "--epochs=4", "--loss=smoothi_ndcg:alpha=2")
    assert changed.returncode != 0
    assert "loss_options={'alpha': 2} (was {'alpha': 1.0})" in changed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["--loss=smoothi_precision:topn=5:alpha=10:delta=0.2", "--select_by=ndcg", "--patience=1"],
        ["--loss=list_mle"],
        ["--loss=soft_ndcg:sigma=0.5:topn=5"],
        ["--loss=smoothi_map", "--strategy=mirrored", "--normalization=standardize", "--hidden=16,8"],
    ],
)
def test_other_losses_and_flags_train_a_ranker(arguments, files, tmp_path):
    done = run(files, tmp_path, "--epochs=2", *arguments)
    assert done.returncode == 0, done.stderr
    assert 0.3 < json.loads((tmp_path / "metrics.json").read_text())["test"]["ndcg"] < 1.0


@pytest.mark.slow
def test_training_does_not_resume_with_a_changed_file_of_the_same_name(files, tmp_path):
    own = {part: tmp_path / f"{part}.txt" for part in files}
    for part, path in files.items():
        own[part].write_bytes(path.read_bytes())
    assert run(own, tmp_path / "output", "--epochs=1").returncode == 0
    own["valid"].write_bytes(files["test"].read_bytes())
    resumed = run(own, tmp_path / "output", "--epochs=2")
    assert resumed.returncode == 1
    (line,) = [line for line in resumed.stderr.splitlines() if line.startswith("error: ")]
    assert "got valid=" in line and line.endswith("Use another directory for another training.")


@pytest.mark.slow
def test_a_bad_row_during_training_is_reported_in_one_line(files, tmp_path):
    train = tmp_path / "train.txt"
    train.write_bytes(files["train"].read_bytes())
    arguments = ["--epochs=500", f"--train={train}"]
    log = tmp_path / "output" / "training" / "log.csv"
    with open(tmp_path / "stderr", "w") as stderr:
        process = subprocess.Popen(
            command(files, tmp_path / "output", *arguments), stdout=subprocess.DEVNULL, stderr=stderr, cwd=ROOT
        )
        deadline = time.time() + 300
        while not log.exists():
            assert time.time() < deadline and process.poll() is None
            time.sleep(0.02)
        with open(train, "a") as file:
            file.write("1 qid:last 1:NULL\n")
        assert process.wait(timeout=300) == 1
    number = len(train.read_text().splitlines())
    lines = [line for line in (tmp_path / "stderr").read_text().splitlines() if "NULL" in line or "Traceback" in line]
    hint = "`LetorFormat(missing={'NULL': VALUE})` reads it as VALUE"
    message = f"value of feature 1: 'NULL' is not a finite float32 number; {hint}"
    assert lines == [f"error: {train}:{number}: {message}"]


@pytest.mark.slow
def test_other_file_formats_are_read_and_tensorboard_logs_are_written(files, tmp_path):
    pytest.importorskip("tensorboard", reason="this stack has no TensorBoard")
    own = {part: tmp_path / f"{part}.txt" for part in files}
    for part, path in files.items():
        lines = [line.split(" #")[0].split() for line in path.read_text().splitlines()]
        own[part].write_text("".join(f"{label} 0:NULL {' '.join(pairs)} # {qid}\n" for label, qid, *pairs in lines))
    arguments = ["--first_index=0", "--missing=NULL=1", "--query_ids=comment", "--num_features=20"]
    done = run(own, tmp_path / "output", "--epochs=1", "--tensorboard", *arguments)
    assert done.returncode == 0, done.stderr
    assert " valid: 20 queries" in done.stdout and ", 20 features" in done.stdout
    assert list((tmp_path / "output" / "tensorboard").rglob("events.out.tfevents.*"))
    card = json.loads((tmp_path / "output" / "export" / "1" / "assets.extra" / "model_card.json").read_text())
    assert card["data"]["features"] == "LETOR's 0 to 19, in this order"


# Runs several command lines in one process, and prints the exit message of each.
DRIVER = """
import json, runpy, sys
from absl.testing import flagsaver

commands, sys.argv = json.loads(sys.argv[1]), ["train_letor.py"]
sys.path.insert(0, "examples")
names = runpy.run_path("examples/train_letor.py")
ends = []
for arguments in commands:
    with flagsaver.flagsaver():
        try:
            names["main"](names["ranker_flags"].parse(["train_letor.py", *arguments]))
        except SystemExit as end:
            ends.append(str(end))
print(json.dumps(ends))
"""

BAD = [
    (["--loss=softndcg"], "`loss` must be one of 'smoothi_ndcg'"),
    (["--recipe=papers"], "flag --recipe=papers: value should be one of <default|paper>"),
    (["--los=x"], "Unknown command line flag 'los'. Did you mean: loss ?"),
    (["--epochs=many"], "`epochs` must be an integer >= 1, got 'many'."),
    (["stray"], "Unknown argument 'stray'. Flags start with --."),
    (["--loss=list_net:topn=5"], "`topn` must be an argument of Ranker or a hyperparameter of list_net"),
    (["--hidden=B99"], "`hidden` must be one of 'linear', 'B64'"),
    (["--hidden=8,x"], "`hidden` must be one of 'linear', 'B64'"),
    (["--learning_rate=-1"], "`learning_rate` must be a finite number > 0, got -1."),
    (["--loss=smoothi_ndcg:alpha=-1"], "`alpha` must be a finite number > 0, got -1."),
    (["--loss=approx_ndcg:topn=0"], "`topn` must be an integer >= 1 or None, got 0."),
    (["--patience=0"], "`patience` must be an integer >= 1 or None, got 0."),
    (["--num_features=0"], "`num_features` must be an integer >= 1 or None, got 0."),
    (["--first_index=2"], "`first_index` must be 0 or 1, got '2'."),
    (["--missing=NULL"], "`missing` must be comma-separated TOKEN=VALUE pairs, got 'NULL'."),
    (["--test="], "--train, --valid and --test must be given together."),
    (["--test=/nope"], "`--test` must match files, got '/nope', which matches none."),
    (["--valid={folder}"], "`--valid` must match files, got '{folder}', a folder."),
    (["--output_dir={train}"], "--output_dir must be a folder, got the file '{train}'."),
    (
        ["--test={wide}"],
        "`test` must have at most 16 features, as in the training files, got 17; `num_features=17`",
    ),
    (
        ["--test={wide}", "--num_features=15"],
        "`train` must have at most 15 features, as set by `num_features=15`, got 16",
    ),
    (["--test={real}"], "`test` must have labels that are whole numbers from 0 to 1023, for trec_eval, got"),
    (["--train={zero}"], "`train` must have a label above 0, got 0 for all 2 documents."),
    (["--test={bad}"], "test: {bad}:2: value of feature 1: 'NULL' is not a finite float32 number"),
    (["--train={train},{bad}"], "train: {bad}:1: duplicate query 'a': its lines must be contiguous in one file"),
]


@pytest.mark.slow
def test_bad_flags_and_files_are_reported_in_one_line_before_the_first_step(files, tmp_path):
    contents = {
        "wide": "1 qid:a 17:1\n",
        "real": "0.5 qid:a 1:1\n",
        "zero": "0 qid:a 1:1\n0 qid:a 16:1\n",
        "bad": "1 qid:a 1:1\n1 qid:b 1:NULL\n",
    }
    names = {"folder": tmp_path, "train": tmp_path / "train.txt"}
    names["train"].write_bytes(b"0 qid:a 1:1\n" + files["train"].read_bytes())
    for name, content in contents.items():
        names[name] = tmp_path / f"{name}.txt"
        names[name].write_text(content)
    output = tmp_path / "output"
    given = [f"--{part}={path}" for part, path in files.items()] + [f"--output_dir={output}", "--epochs=1"]
    commands = [[*given, *(argument.format(**names) for argument in arguments)] for arguments, _ in BAD]
    printed = helpers.check_run("-c", DRIVER, json.dumps(commands), TF_CPP_MIN_LOG_LEVEL="3")
    for (_, message), end in zip(BAD, json.loads(printed.splitlines()[-1]), strict=True):
        assert end.startswith(f"error: {message.format(**names)}") and "\n" not in end
    assert not output.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "defaults"),
    [
        ([], {"learning_rate": "0.01", "members": "3", "normalization": "standardize"}),
        (["--recipe", "paper"], {"learning_rate": "0.001", "members": "1", "normalization": "none"}),
    ],
)
def test_help_shows_the_defaults_in_force(files, tmp_path, flags, defaults):
    shown = run({}, tmp_path, recipe=[*flags, "--help"]).stdout
    for name, value in defaults.items():
        (text,) = re.findall(rf"^  --{name}: (.*?)^  --", shown, re.M | re.S)
        assert re.findall(r"\(default: '(.*)'\)", text) == [value]


@pytest.mark.slow
def test_the_process_exits_with_the_error_line_and_no_traceback(files, tmp_path):
    done = run(files, tmp_path, "--loss=softndcg")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("error: `loss` must be one of ")
    assert "Traceback" not in done.stderr
