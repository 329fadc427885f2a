"""The documentation is complete, its snippets run, its links work, and the site builds."""

import ast
import html
import importlib
import inspect
import json
import os
import re
import runpy
import subprocess
import sys

import pytest
from PIL import Image

from tests import documents, helpers
from tfr_smooth import losses, metrics, registry

ROOT = documents.ROOT
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
BRIDGE = "tf_ranking"  # imports TF-Ranking, which only one stack has
# Their snippets train models or run all losses.
SLOW = {f"docs/{page}.md" for page in ("distributed", "evaluation", "getting_started", "losses/index", "serving")}
SLOW |= {"docs/training.md", "docs/relaxations/your_own.md"}
# Class -> the methods that users call or override and the site documents.
METHODS = {
    "Criterion": {"__call__", "compute", "counts"},
    "MeanOverLists": {"update_state", "result", "reset_state", "ranking", "metric"},
    "MeasureLoss": {"ranking", "metric"},
    "PositionRanking": {"positions", "beta", "document_discounts"},
    "Ranking": {"indicators", "rank_relevance", "discounted_gain", "steps"},
    "RankingLoss": {"__call__", "compute", "counts"},
    "RankingMetric": {"__call__", "compute", "relevance", "has_relevant"},
    "SoftRank": {"document_discounts"},
    "Sinkhorn": {"transport"},
    "Steps": {"relevance_before", "none_before"},
}
# Page -> name in the registry.
RELAXATIONS = {name: name for name in ("smoothi", "approx", "neuralsort", "softsort", "fastsort", "sinkhorn")} | {
    "softrank": "soft"
}
PLOTS = {"ranking", "error"}


def public_names(package):
    """Returns the public classes and functions of a package; reads those of `BRIDGE` without importing it."""
    if package == BRIDGE:
        source = (ROOT / "tfr_smooth" / BRIDGE / "__init__.py").read_text(encoding="utf-8")
        assigned = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
        # `tfr` is a module.
        return {f"tfr_smooth.{BRIDGE}.{name}" for name in ast.literal_eval(assigned[0].value) if name != "tfr"}
    module = importlib.import_module(f"tfr_smooth.{package}")
    return {
        f"tfr_smooth.{package}.{name}"
        for name in module.__all__
        if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))
    }


def test_every_relaxation_has_a_page_with_class_docs_and_plots():
    assert set(RELAXATIONS.values()) == set(registry.RANKINGS)
    for page, ranking in RELAXATIONS.items():
        text = TEXTS[f"docs/relaxations/{page}.md"]
        assert f"\n::: tfr_smooth.rankings.{registry.RANKINGS[ranking].ranking.__name__}\n" in text
        assert f"\n<!-- classes: {ranking} -->\n" in text
        assert set(re.findall(rf"\(\.\./images/{page}_(\w+)\.png\)", text)) == PLOTS, page


def test_the_losses_page_lists_the_arguments_of_all_rankings_and_metrics():
    text = TEXTS["docs/losses/index.md"]

    def row(part, classes):
        defaults = registry.defaults(part).items()
        arguments = ", ".join(
            f'{key}="{value}"' if isinstance(value, str) else f"{key}={value}" for key, value in defaults
        )
        package = part.__module__.split(".")[1]
        return f"| `{package}.{part.__name__}` | `{classes}` | {f'`{arguments}`' if arguments else ''} |".replace(
            "  |", " |"
        )

    rows = [row(entry.ranking, f"{entry.prefix}...Loss") for entry in registry.RANKINGS.values()]
    rows += [row(entry.metric, f"...{entry.suffix}Loss") for entry in registry.MEASURES.values()]
    assert [each for each in rows if f"\n{each}" not in text] == []
    assert [entry.loss for entry in registry.BASELINES.values() if f"`{entry.loss}`" not in text] == []


def test_every_image_is_used_and_under_60_kb():
    images = sorted((ROOT / "docs/images").glob("*.png"))
    shown = {name for text in TEXTS.values() for name in re.findall(r"images/(\w+\.png)", text)}
    assert {image.name.replace("_dark.png", ".png") for image in images} == shown
    assert [image.name for image in images if image.stat().st_size > 60_000] == []


def test_every_image_has_a_dark_variant_of_the_same_size():
    images = {path.stem: path for path in (ROOT / "docs/images").glob("*.png")}
    light = {name for name in images if not name.endswith("_dark")}
    assert light == {name.removesuffix("_dark") for name in images if name.endswith("_dark")}
    for name in light:
        with Image.open(images[name]) as bright, Image.open(images[f"{name}_dark"]) as dark:
            assert bright.size == dark.size and bright.width >= 700, name
            corners = [picture.convert("L").getpixel((0, 0)) for picture in (bright, dark)]
        assert corners[0] > 250 and corners[1] < 50, name


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_point_to_existing_files(page):
    assert documents.broken_links(page) == []


@pytest.mark.parametrize("page", PAGES)
def test_no_wrapped_line_starts_a_list(page):
    """A wrapped line of a list item such as "100. Then" would become an item, without its number."""
    prose = re.sub(r"^ *```.*?^ *```", "", TEXTS[page], flags=re.M | re.S)
    assert re.findall(r"^ {1,3}(?:\d+[.)]|[-*+]) .*", prose, re.M) == []


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in SLOW else [])
        for page in PAGES
        if documents.snippets(page)
    ],
)
def test_snippets_run_in_order_and_print_the_documented_values(page, tmp_path, capsys):
    program = "\n".join(documents.snippets(page))
    if "tf_ranking" in program:
        helpers.tf_ranking()
    # AutoGraph needs the source file.
    path = tmp_path / "page.py"
    path.write_text(documents.in_folder(program, tmp_path), encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    # Numbers at the start of comments after `print` calls.
    claimed = re.findall(r"^print\(.*\)  # (-?\d+\.\d+)\b", program, re.M)
    assert [number for number in claimed if number not in printed] == []


def test_the_custom_relaxation_example_has_fewer_than_30_lines():
    (example,) = [
        code for code in documents.snippets("docs/relaxations/your_own.md") if "class SuccessiveSoftmax" in code
    ]
    assert "import tensorflow" in example
    assert len([line for line in example.splitlines() if line.strip()]) < 30


def test_the_dataframe_example_has_at_most_ten_lines():
    (example,) = [code for code in documents.snippets("docs/your_own_data.md") if "ranked = " in code]
    assert "import tfr_smooth" in example and len([line for line in example.splitlines() if line.strip()]) <= 10


@pytest.mark.slow
def test_the_plot_script_draws_the_plots_of_the_pages(tmp_path):
    command = [sys.executable, "tools/plot_relaxations.py", f"--output_dir={tmp_path}", "--only=approx,softsort"]
    command += ["--lists=3", "--documents=4", "--per_decade=1", "--runs=1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def draw(*more):
        done = subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr

    draw()
    names = {f"{name}_{plot}" for name in ("approx", "softsort") for plot in PLOTS} | {"cost", "trade_off"}
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    expected = {f"{name}{variant}.png" for name in names for variant in ("", "_dark")}
    assert set(files) == expected | {"errors.csv", "costs.csv"}
    # A second run draws the stored values.
    draw("--plots=error,cost", "--lists=5")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    draw("--plots=error,trade_off", "--lists=5", "--compute")
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert again["errors.csv"] != files["errors.csv"] and again["costs.csv"] == files["costs.csv"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Returns the text of each page of the built site."""
    pytest.importorskip("mkdocs", reason="MkDocs is only in the stack 'latest'")
    folder = documents.build_site(tmp_path_factory.mktemp("site"))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.html")}


@pytest.fixture(scope="module")
def anchors(site):
    """Returns the documented names of all pages, with repetitions."""
    return [name for text in site.values() for name in re.findall(r'<h\d id="(tfr_smooth\.[\w.]+)"', text)]


@pytest.mark.parametrize("package", documents.PACKAGES)
def test_every_public_class_and_function_is_documented_exactly_once(package, anchors):
    names = public_names(package)
    assert names
    assert {name for name in names if anchors.count(name) != 1} == set()


def test_only_public_names_and_listed_methods_are_documented(anchors):
    names = set().union(*(public_names(package) for package in documents.PACKAGES))
    internal = set()
    for anchor in set(anchors) - names:
        owner, _, method = anchor.rpartition(".")
        allowed = METHODS.get(owner.rpartition(".")[2], set())
        package = owner.split(".")[1]
        if owner not in names or (
            package in ("ops", "functional", "losses", "metrics")
            and method not in allowed | {"indicators", "positions"}
        ):
            internal.add(anchor)
    assert internal == set()


@pytest.mark.parametrize("package", [losses, metrics])
def test_documented_signatures_show_arguments_and_defaults(package, site):
    text = "\n".join(site.values())
    for name, described in package.named.CLASSES.items():
        start = text.index(f'id="{package.__name__}.{described.__name__}"')
        section = re.sub(r"<[^>]+>", "", text[start : text.find('class="doc doc-heading"', start + 200)])
        signature = html.unescape(section[: section.index(f"{inspect.getdoc(described)}"[:9])])
        for parameter in list(inspect.signature(described).parameters.values()):
            default = f'"{parameter.default}"' if isinstance(parameter.default, str) else repr(parameter.default)
            assert re.search(rf"\b{parameter.name}: [\w. |]+ = {re.escape(default)}", signature), (name, parameter)


def test_every_page_is_in_the_site(site):
    assert {page.removeprefix("docs/").removesuffix(".md") + ".html" for page in PAGES} <= set(site)


def test_every_notebook_is_in_the_site_with_its_outputs(site):
    for path in (ROOT / "docs/notebooks").glob("*.ipynb"):
        text = site[f"notebooks/{path.stem}.html"]
        code = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
        outputs = [output for cell in code for output in cell["outputs"]]
        formats = [format for output in outputs for format in output.get("data", ())]
        assert text.count('src="data:image/png') == formats.count("image/png") > 0
        assert text.count("<table>") == formats.count("text/html") > 0
        plain = [output for output in outputs if not {"image/png", "text/html"} & set(output.get("data", ()))]
        assert text.count('<div class="highlight">') == len(code) + len(plain)


def test_the_table_of_losses_lists_every_loss(site):
    rows = re.findall(r"<tr>\s*<td><code>(\w+)</code>", site["losses/index.html"])
    assert rows == list(losses.TABLE)


def test_the_table_of_metrics_lists_every_metric(site):
    rows = re.findall(r"<tr>\s*<td><code>(\w+)</code></td>", site["metrics.html"])
    assert rows == list(metrics.TABLE)


def test_formulas_are_marked_for_rendering(site):
    assert 'class="arithmatex"' in site["relaxations/approx.html"]
    for name, text in site.items():
        others = re.sub(r'<(span|div) class="arithmatex">.*?</\1>', "", text, flags=re.S)
        assert not re.search(r"\\(frac|sum|mathrm|text)\b", others), name


def test_the_site_loads_no_external_resources(site):
    for name, text in site.items():
        assert not re.search(r'<(script|img|iframe)[^>]*src="(https?:)?//|<link[^>]*href="//', text), name
        assert not re.search(r'<link rel="stylesheet"[^>]*href="https?:', text), name
