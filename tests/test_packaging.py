"""The wheel, the version, the imports between the layers of the package, and the environments that `make` creates."""

import ast
import email
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import coverage
import pytest

ROOT = pathlib.Path(__file__).absolute().parents[1]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


VERSION = re.search(r'^__version__ = "(.+)"$', read("tfr_smooth/_version.py"), re.M)[1]


def package_files():
    return [
        path for path in sorted((ROOT / "tfr_smooth").rglob("*")) if path.is_file() and "__pycache__" not in path.parts
    ]


# The wheel.


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Builds the wheel without network, from a copy of the sources that keeps the tree clean."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("examples", "tests", "tfr_smooth", "tools"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", f"--wheel-dir={target}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = target.iterdir()
    return path


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_wheel_contains_exactly_the_package(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    info = f"tfr_smooth-{VERSION}.dist-info/"
    inside = sorted(name for name in names if not name.startswith(info))
    assert inside == [path.relative_to(ROOT).as_posix() for path in package_files()]
    assert "tfr_smooth/py.typed" in inside
    assert info + "licenses/LICENSE" in names


def test_readme_in_the_wheel_has_absolute_links(metadata):
    """Package indexes show the README, where relative links would be broken."""
    assert metadata["Description-Content-Type"] == "text/markdown"
    readme, shown = read("README.md"), metadata.get_payload(decode=True).decode("utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert len(links) == len(re.findall(r"\]\(", readme)) and [link for link in links if ":" not in link] == []
    repository = re.search("^repository-code: (.+)$", read("CITATION.cff"), re.M)[1]
    inside = [link.removeprefix(f"{repository}/blob/main/") for link in links if link.startswith(repository)]
    assert "docs/getting_started.md" in inside
    assert [path for path in inside if not (ROOT / path.partition("#")[0]).is_file()] == []
    # The rest of the README is unchanged.
    assert shown.replace(f"{repository}/blob/main/", "").strip() == readme.strip()


def declared(metadata, extra=None):
    """Returns the distributions that the wheel requires, without extras or with this extra."""
    needs = [need.partition(";") for need in metadata.get_all("Requires-Dist")]
    marker = "" if extra is None else f'extra == "{extra}"'
    return {
        re.match(r"[\w.-]+", need)[0]
        for need, _, condition in needs
        if condition.strip().rpartition(" and ")[2] == marker
    }


def test_wheel_declares_every_imported_package(metadata):
    other_names = {
        "PIL": "matplotlib",  # which requires Pillow
        "Stemmer": "PyStemmer",
        "backports": "backports.zstd",
        "google": "protobuf",
        "pytrec_eval": "pytrec_eval-terrier",
        "tensorflow_serving": "tensorflow-serving-api",
    }
    imported = {name.partition(".")[0] for path in package_files() for name in imports(path)}
    # `compression` is in the standard library of newer Python versions.
    # scikit-learn itself calls the method that imports it.
    outside = imported - set(sys.stdlib_module_names) - {"compression", "sklearn", "tfr_smooth"}
    names = ("evaluation", "recommendation", "serving", "study", "text", "ranking", "zstd")
    extras = [declared(metadata, extra) for extra in names]
    needed = {other_names.get(name, name.replace("_", "-")) for name in outside}
    # Only the examples import tqdm, and only KerasHub safetensors.
    assert needed == declared(metadata).union(*extras) - {"tfr_smooth", "tqdm", "safetensors"}
    assert declared(metadata) == {"numpy", "protobuf", "pyarrow", "tensorflow", "typing-extensions"}


@pytest.mark.slow
def test_installed_wheel_imports_without_the_source_tree(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    command = [sys.executable, "-c", "import tfr_smooth; print(tfr_smooth.__version__, tfr_smooth.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == [VERSION, str(tmp_path / "site/tfr_smooth/__init__.py")], done.stderr


# The version.


def test_citations_name_the_version():
    assert f"\nversion: {VERSION}\n" in read("CITATION.cff")
    assert f"{{{VERSION}}}" in read("docs/citation.md")


def test_changelog_starts_with_the_version():
    """The heading of a development version names the release and is marked as unreleased."""
    number, date = re.search(r"^## \[(.+?)\] - (.+)$", read("CHANGELOG.md"), re.M).groups()
    release, _, development = VERSION.partition(".dev")
    assert number == release
    assert (date == "Unreleased") == bool(development)


# Imports between the parts of the package.


@functools.cache
def imports(path):
    """Returns the dotted names that a file of the package imports: `a.b` for `from a import b`."""
    if path.suffix != ".py":
        return set()
    package = path.relative_to(ROOT).parts[:-1]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, node.module] if node.module else above)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def part_of(path):
    return path.relative_to(ROOT / "tfr_smooth").parts[0].removesuffix(".py")


def imported_parts(part):
    """Returns the other parts of tfr_smooth (its direct modules and packages) that one part imports."""
    names = {name for path in package_files() if part_of(path) == part for name in imports(path)}
    return {name.split(".")[1] for name in names if name.startswith("tfr_smooth.")} - {part}


LAYERS = [
    {"rankings"},
    {"measures"},
    {"registry", "_serialization"},
    {"_classes", "_lookup", "_plotting"},
    {"losses", "metrics"},
    {"models"},  # `compile` accepts names of losses and metrics
    {"training"},
    {"serving"},
    {"_table_inputs"},
    {"_ranker_file"},
    {"ranker"},
    {"recommendation", "study"},
    {"keras_ranking"},
]
LAYERED = set().union(*LAYERS)


def test_a_layer_imports_only_lower_layers_and_data_and_evaluation_import_none():
    assert LAYERED | {"data", "evaluation"} <= {part_of(path) for path in package_files()}
    assert imported_parts("data") & LAYERED == set()
    assert imported_parts("evaluation") & LAYERED <= {"_plotting"}  # one color per relaxation
    lower = set()
    for layer in LAYERS:
        for part in layer:
            assert imported_parts(part) & LAYERED <= lower, part
        lower |= layer


def test_private_modules_import_no_public_part():
    private = {part_of(path) for path in package_files() if part_of(path).startswith("_")}
    for part in private - {"__init__"} - LAYERED:
        assert {name for name in imported_parts(part) if not name.startswith("_")} == set(), part


def test_only_the_tf_ranking_package_imports_tf_ranking():
    importers = {
        path.relative_to(ROOT).as_posix()
        for path in package_files()
        if any(name.partition(".")[0] == "tensorflow_ranking" for name in imports(path))
    }
    assert importers and {path.rpartition("/")[0] for path in importers} == {"tfr_smooth/tf_ranking"}


# The Makefile and tools/stack.sh, with fake Python interpreters.

FAKE_PYTHON = """\
#!/bin/sh
case "$*" in
  *version_info*) echo {minor} ;;
  *ensurepip*) exit {no_venv} ;;
  "-m venv --clear "*)
    echo "{name} makes $4" >> log
    rm -rf "$4"
    mkdir -p "$4/bin"
    cp "$0" "$4/bin/python"
    ;;
  "-m pip "*)
    echo "$0 installs" >> log
    [ ! -e no-network ]
    ;;
  "-m uv pip "*)
    echo "$0 installs with uv" >> log
    [ ! -e no-index-for-uv ]
    ;;
  *) echo "$0 $*" >> log ;;
esac
"""


@pytest.fixture
def machine(tmp_path):
    """Returns a folder with the Makefile and no working Python until `add_python` adds one."""
    for name in ("Makefile", "pyproject.toml", "tools/stack.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    # These hide the real interpreters, like the shims of version managers: found on the path, but failing.
    for name in ("python3", "python3.10", "python3.11"):
        add_program(tmp_path, name, "#!/bin/sh\nexit 127\n")
    return tmp_path


def add_program(machine, name, text):
    (machine / "bin" / name).write_text(text)
    (machine / "bin" / name).chmod(0o755)


def add_python(machine, name, minor, no_venv=0):
    add_program(machine, name, FAKE_PYTHON.format(name=name, minor=minor, no_venv=no_venv))


def run(machine, *command):
    """Runs a command in the folder, without the environment variables of this process, such as those of make."""
    return subprocess.run(
        command,
        cwd=machine,
        env={"PATH": f"{machine}/bin:/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def stack(machine, *arguments):
    return run(machine, "sh", "tools/stack.sh", *arguments)


def log(machine):
    """Returns and clears the log of the fake interpreters."""
    path = machine / "log"
    lines = path.read_text().splitlines() if path.exists() else []
    path.write_text("")
    return lines


@pytest.mark.parametrize(
    ("pythons", "oldest"),
    [({"python3": 10}, "python3"), ({"python3": 11}, "python3"), ({"python3": 13, "python3.10": 10}, "python3.10")],
)
def test_the_default_python_runs_the_stacks_and_an_older_one_may_run_tensorflow_2_15(machine, pythons, oldest):
    for name, minor in pythons.items():
        add_python(machine, name, minor)
    assert stack(machine, "list").stdout == "latest ranking\n"
    assert stack(machine, "list", "all").stdout == "latest ranking ranking-2.15\n"
    found = [stack(machine, "python", name).stdout.strip() for name in ("latest", "ranking", "ranking-2.15")]
    assert found == ["python3", "python3", oldest]


def test_newer_python_alone_skips_tensorflow_2_15_with_a_note(machine):
    add_python(machine, "python3", 13)
    listed = stack(machine, "list", "all")
    assert listed.stdout == "latest ranking\n"
    assert "'ranking-2.15' does not run" in listed.stderr
    assert stack(machine, "python", "ranking-2.15").returncode == 1


@pytest.mark.parametrize(
    ("minor", "no_venv", "message"),
    [
        (None, 0, "cannot run 'python3'"),
        (9, 0, "'python3' is older than Python 3.10"),
        (11, 1, "apt install python3-venv"),
    ],
)
def test_errors_name_what_the_default_python_lacks(machine, minor, no_venv, message):
    if minor is not None:
        add_python(machine, "python3", minor, no_venv)
    refused = run(machine, "make", "train")
    assert refused.returncode != 0 and message in refused.stderr


def installation(stack):
    """Returns the first lines of the log when the stack is installed."""
    python = f".venv/{stack}/bin/python"
    return [f"python3 makes .venv/{stack}", f"{python} installs", f"{python} installs with uv"]


def test_a_second_run_installs_nothing_and_a_failed_installation_is_repeated_from_scratch(machine):
    add_python(machine, "python3", 11)
    (machine / "no-network").touch()
    assert run(machine, "make", "train").returncode != 0
    assert len(log(machine)) == 2
    (machine / "no-network").unlink()
    train = ".venv/latest/bin/python examples/train_letor.py --output_dir=output/demo"
    assert run(machine, "make", "train").returncode == 0
    assert log(machine) == [*installation("latest"), train]
    assert run(machine, "make", "train", "ARGS=--loss=map").returncode == 0
    assert log(machine) == [train + " --loss=map"]


def test_tf_ranking_is_installed_without_its_dependencies_and_pip_installs_what_uv_cannot(machine):
    add_python(machine, "python3", 13)
    (machine / "no-index-for-uv").touch()
    done = run(machine, "make", "test-ranking")
    assert done.returncode == 0
    for installer in ("uv pip install --quiet --python .venv/ranking", "pip install --quiet"):
        assert f"-m {installer} --no-deps tensorflow-ranking==0.5.5" in done.stdout
    python = ".venv/ranking/bin/python installs"
    assert log(machine)[:6] == [*installation("ranking"), python, f"{python} with uv", python]


def test_the_parts_of_the_tests_cover_all_folders(machine):
    add_python(machine, "python3", 11)
    pytest_command = ".venv/latest/bin/python -m pytest --numprocesses=2 --dist=worksteal -m "
    assert run(machine, "make", "test-latest").returncode == 0
    assert log(machine)[3:] == [f"{pytest_command}not slow"]
    assert run(machine, "make", "test-latest", "MARKS=slow or not slow").returncode == 0
    first, others = [line.removeprefix(f"{pytest_command}slow or not slow").split() for line in log(machine)]
    assert first and all((ROOT / path).exists() for path in first)
    assert others == [f"--ignore={path}" for path in first]
    run(machine, "make", "test-ranking")
    (ranking,) = [line for line in log(machine) if line.startswith(".venv/ranking/bin/python -m pytest")]
    chosen = ranking.partition("not slow ")[2].split()
    assert "tests/tf_ranking" in chosen and all((ROOT / path.partition("::")[0]).exists() for path in chosen)
    run(machine, "make", "test-ranking", "MARKS=slow or not slow")
    *_, everything, others = log(machine)
    # `make test-latest` runs these with the same TensorFlow.
    assert "tests/test_modes.py" in everything and " tests/rankings" not in everything
    assert "--ignore=tests/rankings" in others and "--ignore=tests/study" not in others


def test_coverage_counts_the_imports_of_programs_that_tests_start(tmp_path):
    names = {"COVERAGE_PROCESS_START": str(ROOT / "pyproject.toml"), "COVERAGE_FILE": str(tmp_path / "data")}
    (tmp_path / "other.py").write_text("x = 1\n")
    program = "import other; from tfr_smooth import _version"
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **names}, cwd=tmp_path)
    assert done.returncode == 0
    (path,) = tmp_path.glob("data.*")
    data = coverage.CoverageData(str(path))
    data.read()
    assert 3 in data.lines(str(ROOT / "tfr_smooth" / "_version.py"))
    assert all(pathlib.Path(name).is_relative_to(ROOT / "tfr_smooth") for name in data.measured_files())
