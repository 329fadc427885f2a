"""The site builds, documents every public name, and its pages render in headless Chromium."""

import json
import re
import shutil

import pytest

import tfr_smooth
from tests.helpers import documents

build = pytest.importorskip("mkdocs.commands.build", reason="MkDocs is only in the stack 'latest'")
mkdocs_config = pytest.importorskip("mkdocs.config")
pytestmark = pytest.mark.slow  # `make docs` builds it in seconds.
ROOT = documents.ROOT
SOURCES = [path for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".ipynb")]
PAGES = sorted(path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in SOURCES)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Builds the site; warnings of MkDocs, such as broken links and names without documentation, fail the build."""
    folder = tmp_path_factory.mktemp("site")
    config = mkdocs_config.load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
    config.plugins.on_startup(command="build", dirty=False)
    build.build(config)
    return folder


@pytest.fixture(scope="module")
def texts(site):
    """Returns the text of each page of the built site."""
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def test_names_are_documented_once(texts):
    """Each is documented: pages of packages link to all of their names."""
    anchors = [name for text in texts.values() for name in re.findall(r'<h\d id="(tfr_smooth\.[\w.]+)"', text)]
    assert len(anchors) > 100 and {name for name in anchors if anchors.count(name) > 1} == set()
    for package in documents.PACKAGES:
        if package not in ("keras_ranking", "ranker"):  # has only namespaces; is documented as `tfr_smooth.Ranker`
            assert f'href="#tfr_smooth.{package}.' in texts[f"api/{package}.html"]


def test_every_notebook_is_in_the_site_with_its_outputs(texts):
    for path in (ROOT / "docs/notebooks").glob("*.ipynb"):
        text, cells = texts[f"notebooks/{path.stem}.html"], json.loads(path.read_text(encoding="utf-8"))["cells"]
        formats = [set(output.get("data", ())) for cell in cells for output in cell.get("outputs", ())]
        assert text.count('src="data:image/png') == sum("image/png" in each for each in formats)
        assert text.count("<table>") == sum("text/html" in each for each in formats) > 0


def test_pages_name_the_version_mark_formulas_lead_to_files_and_load_nothing_from_other_sites(texts):
    for name, text in texts.items():
        assert name.startswith("404") or f"Version {tfr_smooth.__version__}" in text, name
        others = re.sub(r'<(span|div) class="arithmatex">.*?</\1>', "", text, flags=re.S)
        assert not re.search(r"\\(frac|sum|mathrm|text)\b", others), name
        assert not re.search(r'<(script|img|iframe)[^>]*src="(https?:)?//|<link[^>]*href="//', text), name
        assert not re.search(r'<link rel="stylesheet"[^>]*href="https?:', text), name
    assert 'class="arithmatex"' in texts["relaxations/approx.html"]
    images = set(re.findall(r"images/(\w+)\.png#only-light", "\n".join(texts.values())))
    assert images == {path.stem for path in (ROOT / "docs/images").glob("*.png") if not path.stem.endswith("_dark")}
    for path in (ROOT / "docs/images").glob("*.webp"):
        assert f'<source srcset="images/{path.name}" media="(prefers-reduced-motion' in texts["index.html"]
    # Links into the repository lead to files.
    repository = r'href="https://github\.com/tfr-smooth/tfr_smooth/(?:blob|edit)/main/([^"#]+)'
    files = {file for text in texts.values() for file in re.findall(repository, text)}
    assert {"LICENSE", "docs/ranker.md", "docs/notebooks/dataframe.ipynb"} <= files
    assert [file for file in files if not (ROOT / file).is_file()] == []


# In a browser.

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
IN_BROWSER = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and chromedriver")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SCHEMES = {"light": "default", "dark": "slate"}

# Elements wider than the window, except inside scrollable elements; images that are missing or of the other scheme;
# and formulas that are not rendered.
DEFECTS = """
    const scrolls = (element) => {
        for (let parent = element.parentElement; parent !== document.body; parent = parent.parentElement)
            if (["auto", "scroll", "hidden"].includes(getComputedStyle(parent).overflowX)) return true
        return false
    }
    const other = arguments[0] === "dark" ? "#only-light" : "#only-dark"
    return [
        ...[...document.querySelectorAll(".md-content *")]
            .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !scrolls(element)),
        ...[...document.images].filter((image) => !image.naturalWidth || /#only-/.test(image.src)
            && image.src.endsWith(other) !== (getComputedStyle(image).display === "none")),
        ...[...document.querySelectorAll(".arithmatex")]
            .filter((formula) => !formula.querySelector(".katex-html")?.getBoundingClientRect().width),
    ].map((element) => element.outerHTML.slice(0, 200))
"""


@pytest.fixture(scope="module", params=SCHEMES)
def browser(request, tmp_path_factory):
    """Starts one browser per scheme, because the site stores the scheme of the first page."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is only in the stack 'latest'")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.scheme = request.param
    scheme = {"name": "prefers-color-scheme", "value": request.param}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    yield driver
    driver.quit()


def show(driver, address, width=1300):
    set_width(driver, width)
    driver.get(address)
    # The load event precedes the layout with the fonts of formulas.
    drawn = "document.fonts.ready.then(() => requestAnimationFrame(() => done()))"
    driver.execute_async_script(f"const done = arguments[0]; {drawn}")


def set_width(driver, width):
    values = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", values)


@IN_BROWSER
def test_pages_render_completely_and_fit_the_window(browser, site, texts):
    """Each page in one of the schemes, wide and narrow; of the reference, of one template, those with formulas."""
    pages = [each for each in PAGES if each[:4] != "api/" or 'class="arithmatex"' in texts[f"{each}.html"]]
    found, width = {}, "return document.documentElement.scrollWidth"
    for page in pages[list(SCHEMES).index(browser.scheme) :: len(SCHEMES)]:
        show(browser, (site / f"{page}.html").as_uri())
        scheme = browser.execute_script("return document.body.dataset.mdColorScheme")
        defects = [] if scheme == SCHEMES[browser.scheme] else [f"scheme {scheme}"]
        for wide in (1300, 400):
            set_width(browser, wide)
            defects += [f"{browser.execute_script(width)} wide"] if browser.execute_script(width) > wide else []
            defects += browser.execute_script(DEFECTS, browser.scheme)
        defects += [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        found |= {page: defects} if defects else {}
    assert found == {}


# What readers type -> the section that answers it.
SEARCHES = {
    "SmoothI": "relaxations/smoothi.html",
    "missing values": "ranker.html#missing-values",
    "position": "clicks.html",
    "slow": "faq.html#why-is-the-first-epoch-slow",
    "csv": "notebooks/csv_to_service.html",
}


@IN_BROWSER
@pytest.mark.parametrize("browser", ["light"], indirect=True)
def test_a_search_in_files_lists_the_answer_first(browser, site):
    wait = pytest.importorskip("selenium.webdriver.support.wait")
    for words, answer in SEARCHES.items():
        show(browser, (site / "index.html").as_uri())
        browser.find_element("name", "query").send_keys(words)
        # The first page, and its section if the title of the page does not match.
        results = wait.WebDriverWait(browser, 60).until(
            lambda driver: driver.find_elements("css selector", ".md-search-result__item:first-child a")
        )
        page, _, section = answer.partition("#")
        addresses = [result.get_attribute("href") for result in results]
        assert f"/{page}" in addresses[0].partition("?")[0], words
        assert not section or section in [address.partition("#")[2] for address in addresses[:2]], words
