"""The site builds, documents every public name, and lists every loss."""

import ast
import html
import importlib
import inspect
import json
import os
import re

import pytest

import tfr_smooth
from tests import documents
from tfr_smooth import losses, metrics, registry

pytestmark = pytest.mark.slow  # `make docs` builds it in seconds.
ROOT = documents.ROOT
# Packages that one of the stacks cannot import, with their public names that are neither classes nor functions.
NOT_EVERYWHERE = {"tf_ranking": {"tfr"}, "text": {"MEASURES"}}


def public_names(package):
    """Returns the public classes and functions of a package; reads those in `NOT_EVERYWHERE` without importing them."""
    if package in NOT_EVERYWHERE:
        source = (ROOT / "tfr_smooth" / package / "__init__.py").read_text(encoding="utf-8")
        assigned = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
        names = set(ast.literal_eval(assigned[0].value)) - NOT_EVERYWHERE[package]
        return {f"tfr_smooth.{package}.{name}" for name in names}
    module = importlib.import_module(f"tfr_smooth.{package}")
    return {
        f"tfr_smooth.{package}.{name}"
        for name in module.__all__
        if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))
    }


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


def test_only_public_names_and_their_members_are_documented(anchors):
    names = {f"tfr_smooth.{name}" for name in tfr_smooth.__all__}
    names = names.union(*(public_names(package) for package in documents.PACKAGES))
    others = set(anchors) - names
    assert others and {name for name in others if name.rpartition(".")[0] not in names} == set()


@pytest.mark.parametrize("package", [losses, metrics])
def test_documented_signatures_show_arguments_and_defaults(package, site):
    text = "\n".join(site.values())
    generated = importlib.import_module(f"{package.__name__}.measure_{package.__name__.rpartition('.')[2]}")
    for name, described in generated.CLASSES.items():
        start = text.index(f'id="{package.__name__}.{described.__name__}"')
        section = re.sub(r"<[^>]+>", "", text[start : text.find('class="doc doc-heading"', start + 200)])
        signature = html.unescape(section[: section.index(f"{inspect.getdoc(described)}"[:9])])
        for parameter in list(inspect.signature(described).parameters.values()):
            default = f'"{parameter.default}"' if isinstance(parameter.default, str) else repr(parameter.default)
            assert re.search(rf"\b{parameter.name}: [\w. |]+ = {re.escape(default)}", signature), (name, parameter)


@pytest.mark.parametrize("path", sorted((ROOT / "docs/notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_is_in_the_site_with_its_outputs(path, site):
    text = site[f"notebooks/{path.stem}.html"]
    code = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    formats = [set(output.get("data", ())) for cell in code for output in cell["outputs"]]
    assert text.count('src="data:image/png') == sum("image/png" in each for each in formats) > 0
    assert text.count("<table>") == sum("text/html" in each for each in formats) > 0
    plain = [each for each in formats if not {"image/png", "text/html"} & each]
    assert text.count('<div class="highlight">') == len(code) + len(plain)


WORDS = [
    "recommender",
    "implicit feedback",
    "categorical",
    "missing values",
    "which loss",
    "EarlyStopping",
    "KerasTuner",
]
WORDS += ["unbiased", "click", "LambdaMART", "DataFrame"]


@pytest.mark.parametrize("words", WORDS)
def test_guides_contain_the_words_that_users_search_for(words, site):
    guides = [text for name, text in site.items() if not name.startswith(("api/", "changelog"))]
    assert any(words.lower() in re.sub(r"<[^>]+>|\s+", " ", text).lower() for text in guides)


@pytest.mark.parametrize(("page", "package"), [("losses/index.html", losses), ("metrics.html", metrics)])
def test_the_table_lists_every_name(page, package, site):
    assert re.findall(r"<tr>\s*<td><code>(\w+)</code>", site[page]) == list(package.TABLE)


@pytest.mark.parametrize("package", ["rankings", "measures"])
def test_the_tables_list_the_arguments_of_every_ranking_and_measure(package, site):
    for part in {"rankings": registry.RANKINGS, "measures": registry.MEASURES}[package].values():
        row = rf"<code>{package}\.{part.__name__}</code></a></td>(.*?)</tr>"
        (cells,) = re.findall(row, site["losses/index.html"], re.S)
        for name, default in registry.defaults(part).items():
            shown = f'{name}="{default}"' if isinstance(default, str) else f"{name}={default}"
            assert shown in html.unescape(cells)


@pytest.mark.parametrize("page", ["index.html", "citation.html", "losses/index.html", "relaxations/index.html"])
def test_pages_about_all_relaxations_link_to_the_page_of_each(page, site):
    for ranking in registry.RANKINGS.values():
        path = f"relaxations/{ranking.__name__.lower()}.html"
        assert path in site
        cells = " ".join(re.findall("<td.*?</td>", site[page], re.S))
        assert f'href="{os.path.relpath(path, os.path.dirname(page))}' in cells, ranking


def test_links_into_the_repository_lead_to_files(site):
    files = r'href="https://github.com/tfr-smooth/tfr_smooth/blob/main/([^"#]+)'
    links = {link for text in site.values() for link in re.findall(files, text)}
    assert "LICENSE" in links  # from CONTRIBUTING.md, which a page includes
    links |= {link for text in site.values() for link in re.findall(files.replace("blob", "edit"), text)}
    assert {"docs/ranker.md", "docs/notebooks/dataframe.ipynb"} <= links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_every_page_names_the_version(site):
    pages = [path for path in site if not path.startswith("404")]
    assert [path for path in pages if f"Version {tfr_smooth.__version__}" not in site[path]] == []


def test_every_image_follows_the_color_scheme(site):
    text = "\n".join(site.values())
    for name in {path.stem.removesuffix("_dark") for path in (ROOT / "docs/images").glob("*.png")}:
        assert f"images/{name}.png#only-light" in text and f"images/{name}_dark.png#only-dark" in text, name


def test_formulas_are_marked_for_rendering(site):
    assert 'class="arithmatex"' in site["relaxations/approx.html"]
    for name, text in site.items():
        others = re.sub(r'<(span|div) class="arithmatex">.*?</\1>', "", text, flags=re.S)
        assert not re.search(r"\\(frac|sum|mathrm|text)\b", others), name


def test_the_site_loads_no_external_resources(site):
    for name, text in site.items():
        assert not re.search(r'<(script|img|iframe)[^>]*src="(https?:)?//|<link[^>]*href="//', text), name
        assert not re.search(r'<link rel="stylesheet"[^>]*href="https?:', text), name
