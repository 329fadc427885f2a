"""The built site in headless Chromium: layout, color schemes, links, images, formulas and search."""

import functools
import html.parser
import http.server
import shutil
import threading
import urllib.parse

import pytest

from tests import documents

pytest.importorskip("mkdocs", reason="MkDocs is only in the stack 'latest'")
webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is only in the stack 'latest'")
wait = pytest.importorskip("selenium.webdriver.support.wait")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Chromium and chromedriver (Debian: chromium-driver)"),
]
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
SOURCES = [path for path in (documents.ROOT / "docs").rglob("*") if path.suffix in (".md", ".ipynb")]
PAGES = sorted(path.relative_to(documents.ROOT / "docs").with_suffix("").as_posix() for path in SOURCES)
SCHEMES = {"light": "default", "dark": "slate"}

# Elements wider than the window, except inside scrollable elements.
OVERFLOW = """
    const scrolls = (element) => {
        for (let parent = element.parentElement; parent !== document.body; parent = parent.parentElement)
            if (["auto", "scroll", "hidden"].includes(getComputedStyle(parent).overflowX)) return true
        return false
    }
    return [...document.querySelectorAll(".md-content *")]
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !scrolls(element))
        .map((element) => element.outerHTML.slice(0, 200))
"""
MISSING_IMAGES = "return [...document.images].filter((image) => !image.naturalWidth).map((image) => image.src)"
# Visible images of the other color scheme, and hidden images of this one.
WRONG_SCHEME = """
    const other = arguments[0] === "dark" ? "#only-light" : "#only-dark"
    return [...document.images].filter((image) => /#only-/.test(image.src))
        .filter((image) => image.src.endsWith(other) !== (getComputedStyle(image).display === "none"))
        .map((image) => image.src)
"""
NOT_RENDERED = """
    return [...document.querySelectorAll(".arithmatex")]
        .filter((formula) => !formula.querySelector(".katex-html")?.getBoundingClientRect().width)
        .map((formula) => formula.textContent)
"""
FONTS_NOT_LOADED = """
    const done = arguments[0]
    document.fonts.ready.then((fonts) =>
        done([...fonts].filter((font) => font.status === "error").map((font) => font.family)))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return documents.build_site(tmp_path_factory.mktemp("site"))


def start(folder):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={folder}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


@pytest.fixture(scope="module", params=SCHEMES)
def browser(request, tmp_path_factory):
    """Starts one browser per scheme, because the site stores the scheme of the first page."""
    driver = start(tmp_path_factory.mktemp("profile"))
    driver.scheme = request.param
    scheme = {"name": "prefers-color-scheme", "value": request.param}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    yield driver
    driver.quit()


def resize(driver, width):
    values = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", values)


@pytest.mark.parametrize("width", [1300, 400])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_renders_completely_and_fits_the_window(page, width, browser, site):
    resize(browser, width)
    browser.get((site / f"{page}.html").as_uri())
    assert browser.execute_script("return document.body.dataset.mdColorScheme") == SCHEMES[browser.scheme]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OVERFLOW) == []
    assert browser.execute_script(MISSING_IMAGES) == []
    assert browser.execute_script(WRONG_SCHEME, browser.scheme) == []
    assert browser.execute_script(NOT_RENDERED) == []
    assert browser.execute_async_script(FONTS_NOT_LOADED) == []
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


class Links(html.parser.HTMLParser):
    """Collects the anchors of a page and the addresses of its links, images, scripts and style sheets."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.addresses = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        self.addresses |= {values[key] for key in ("href", "src") if values.get(key)}


def test_every_internal_link_has_a_target(site):
    pages = {path.resolve(): Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > len(PAGES)
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # Its addresses are absolute.
            continue
        for address in page.addresses:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            exists = anchor in pages[target].anchors if anchor and target in pages else target.exists()
            if not exists:
                broken.append(f"{path.relative_to(site)}: {address}")
    assert broken == []


@pytest.fixture
def server(site):
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.mark.parametrize("place", ["disk", "server"])
@pytest.mark.parametrize("browser", ["light"], indirect=True)
def test_search_for_smoothi_lists_its_page_first(place, browser, site, server):
    resize(browser, 1300)
    browser.get((site / "index.html").as_uri() if place == "disk" else server)
    browser.find_element("name", "query").send_keys("SmoothI")
    results = wait.WebDriverWait(browser, 60).until(
        lambda driver: driver.find_elements("css selector", ".md-search-result__item > a")
    )
    assert "/relaxations/smoothi.html" in results[0].get_attribute("href")
