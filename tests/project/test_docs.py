"""The snippets and plots of the documentation run, and the tables list every loss and metric."""

import ast
import re
import runpy

import pytest
from PIL import Image

from tests import helpers
from tests.helpers import documents, scripts
from tfr_smooth import _keras, losses, metrics

ROOT = documents.ROOT
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
# Their snippets print values and train nothing.
QUICK = {"docs/data.md", "docs/index.md", "docs/losses/baselines.md", "docs/losses/preferences.md"}
QUICK |= {page for page in PAGES if page.startswith("docs/relaxations/")} - {"docs/relaxations/your_own.md"}
WITH_SNIPPETS = [page for page in PAGES if documents.snippets(page)]


# With Keras 2, only those whose programs use TF-Ranking.
KERAS_2 = {page for page in WITH_SNIPPETS if "tf_ranking" in "".join(documents.snippets(page))}
# What is shorter in the test: patterns of the programs, and their replacements.
SHORTER = {
    r"num_queries=\(\d+, \d+, \d+\)": "num_queries=(32, 16, 16)",
    r"\(None, 20\)": "(1, 2)",
    r"softmax_epochs=\d, epochs=1": "softmax_epochs=1, loss=None",
    r"\[1\.0, 10\.0\]": "[1.0]",
    r"n_iter=2|n_repeats=\d+": lambda found: found[0][:-1] + "1",
    r" wing gas": " wing",
}


def marks(page):
    return [pytest.mark.slow] * (page not in QUICK) + [pytest.mark.keras_2] * (page in KERAS_2)


@pytest.mark.parametrize("page", [pytest.param(page, marks=marks(page)) for page in WITH_SNIPPETS])
def test_snippets_run_in_order_and_print_the_documented_values(page, tmp_path, capsys, monkeypatch, recwarn, caplog):
    # TF-Ranking needs Keras 2.
    snippets = [each for each in documents.snippets(page) if not (_keras.IS_KERAS_3 and "tf_ranking" in each)]
    program = "\n".join(snippets)
    if "tf_ranking" in program:
        helpers.tf_ranking()
    # Numbers at the start of comments after `print` calls.
    claimed = re.findall(r"^print\(.*\)  # (-?\d+\.\d+)\b", program, re.M)
    as_written = page == "README.md" and _keras.IS_KERAS_3
    if not as_written:
        scripts.small_rankers(monkeypatch)
        for pattern, shorter in SHORTER.items():
            program = re.sub(pattern, shorter, program)
    # AutoGraph needs the source file.
    path = tmp_path / "page.py"
    path.write_text(program.replace("/tmp/letor", str(tmp_path / "letor")), encoding="utf-8")
    if as_written:
        done = helpers.run_python(path, TF_CPP_MIN_LOG_LEVEL=None)
        assert done.stderr == ""  # no log of TensorFlow either
        printed = done.stdout
    else:
        runpy.run_path(str(path), run_name="__main__")
        printed = capsys.readouterr().out
    assert [number for number in claimed if number not in printed.splitlines()] == []
    if as_written:
        by_ranker, by_trees, by_hand = map(float, re.findall(r"(0\.\d{4}) ±", printed))
        assert by_ranker > max(by_trees + 0.1, by_hand)
        assert float(re.search(r"kind of the user: (.*)", printed)[1]) > 0.9
        # Python shows no others outside of tests.
        shown = [each for each in recwarn if not issubclass(each.category, (DeprecationWarning, ResourceWarning))]
        assert [str(each) for each in shown] == [] and caplog.messages == []


def rows(page):
    """Returns the arguments with their defaults by name, from the tables whose first column is a name."""
    found = re.findall(r"^\| `(\w+)`<br>(.*)$", documents.read(page), re.M)
    arguments = {name: re.findall(r"`(\w+)=([^`]+)`", cells) for name, cells in found}
    return {name: {key: ast.literal_eval(value) for key, value in pairs} for name, pairs in arguments.items()}


def test_the_tables_have_every_loss_and_metric_with_its_arguments_and_defaults():
    of_metrics = rows("docs/metrics.md")
    assert {name: metrics.hyperparameters(name) for name in metrics.NAMES if name not in losses.NAMES} == of_metrics
    found = {**of_metrics, **rows("docs/losses/index.md")}
    for name in losses.NAMES:
        ranking, _, measure = name.partition("_")
        documented = found[name] if name in found else {**found[ranking], **found[measure]}
        assert documented == losses.hyperparameters(name), name


@pytest.mark.slow
def test_the_plot_script_draws_the_plots_of_the_pages(tmp_path):
    command = ["tools/plot_relaxations.py", f"--output_dir={tmp_path}", "--only=approx,softsort"]
    command += ["--lists=3", "--documents=4", "--per_decade=1", "--runs=1", "--lengths=10,30"]
    scripts.check_run(*command)
    plots = {"approx_ranking", "approx_error", "softsort_ranking", "softsort_error", "cost", "sharpening", "trade_off"}
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    images = {f"{name}{variant}.png" for name in plots for variant in ("", "_dark")}
    assert set(files) == images | {"errors.csv", "costs.csv"}
    with Image.open(tmp_path / "cost.png") as light, Image.open(tmp_path / "cost_dark.png") as dark:
        corners = [image.convert("RGB").getpixel((0, 0)) for image in (light, dark)]
    assert corners == [(255, 255, 255), (0x1E, 0x21, 0x29)]
    scripts.check_run(*command, "--plots=trade_off,cost")  # draws the stored values
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
