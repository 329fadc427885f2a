"""The command `tfr-smooth`: trains, evaluates and exports an estimator, and scores rows, from files to files.

The flags are the arguments of the constructor and of the methods of the estimator, with their names and descriptions.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import importlib
import inspect
import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from tfr_smooth import Ranker, _arguments, _files, data, training
from tfr_smooth.data.reading.files import read_table
from tfr_smooth.data.reading.sources import ranking

_ESTIMATORS = {
    "ranker": ("tfr_smooth", "Ranker"),
    "recommender": ("tfr_smooth.recommendation", "Recommender"),
    "text": ("tfr_smooth.text", "TextRanker"),
}
_USAGE = {
    "train": "TABLE .. --model=FILE.keras [--validation=TABLE] [--estimator=ranker|recommender|text] [FLAG ..]",
    "score": "MODEL TABLE OUT.csv|OUT.parquet [FLAG ..]",
    "evaluate": "MODEL TABLE [FLAG ..]",
    "export": "MODEL FOLDER [FLAG ..]",
}
# Arguments that are flags with a file, or the name of a strategy.
_FILE_FLAGS = {("fit", name) for name in ("validation", "items", "users", "init_model", "strategy")}
_OTHERS = ("path", "by_query")  # arguments that are no flags
_PLAIN = re.compile(r"(str|int|float|bool|Mapping|Sequence\[(str|int|float|tuple))\b")  # annotations of other flags
_ARGUMENT = re.compile(r"^  (\w+): (.*(?:\n    .*)*)", re.M)  # in a docstring
_TABLE = "Files of CSV, TSV, JSON lines, Parquet or Feather, by their endings."
_ROLES = ("query", "label", "weight", "propensity", "features")
_SCORED = 1 << 16  # documents or users that are scored at once, in whole queries


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
      argv: The arguments after the name of the command. None: those of the process.

    Returns:
      The exit status: 0, 2 after an error, which is one line on stderr, or 130 after an interruption.
    """
    command, *arguments = (sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        if command not in _USAGE:
            usage = "\n".join(f"  tfr-smooth {name} {about}" for name, about in _USAGE.items())
            if command not in ("-h", "--help"):
                _arguments.choice("command", command, tuple(_USAGE))
            print(f"{usage}\nThe flags: tfr-smooth train --help [--estimator=..], tfr-smooth export MODEL --help")
            return 0
        {"train": _train, "score": _score, "evaluate": _evaluate, "export": _export}[command](arguments)
    except (ValueError, OSError, ImportError, pa.ArrowException) as error:
        print(f"tfr-smooth: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(error or "Interrupted.", file=sys.stderr)
        return 130
    return 0


class _Parser(argparse.ArgumentParser):
    """The parser of a command, whose flags are the arguments of functions.

    Args:
      command: The name of the command.
      *functions: Functions, whose arguments may also be given by `--param`, if one takes any by name.
    """

    def __init__(self, command: str, *functions: Callable[..., Any]) -> None:
        usage = f"tfr-smooth {command} {_USAGE[command]}"
        super().__init__(usage=usage, allow_abbrev=False, argument_default=argparse.SUPPRESS)
        for function in functions:
            about = dict(_ARGUMENT.findall(inspect.getdoc(function) or ""))
            for name, parameter in inspect.signature(function).parameters.items():
                annotation = "str" if (function.__name__, name) in _FILE_FLAGS else str(parameter.annotation)
                if name in _OTHERS or not _PLAIN.match(annotation):
                    continue
                text = " ".join(about.get(name, "").split()).replace("%", "%%")
                if parameter.default not in (parameter.empty, None, ()):
                    text += f" Default: {parameter.default}."
                self.add_argument(
                    f"--{name}",
                    type=functools.partial(_value, annotation),
                    required=parameter.default is parameter.empty,
                    help=text,
                    metavar="VALUE",
                )
        text = "A further argument, such as a hyperparameter of the loss; may be repeated."
        self.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help=text)

    def error(self, message: str) -> NoReturn:
        """Raises a `ValueError`, which ends the command in one line."""
        raise ValueError(message)

    def parsed(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Returns the values of the given flags by name, those of `--param` included."""
        values, others = self.parse_known_args(arguments)
        if others:
            flags = [name for action in self._actions for name in action.option_strings]
            raise ValueError(f"unknown argument {others[0]}.{_arguments.hint(others[0].partition('=')[0], flags)}")
        given = vars(values)
        for pair in given.pop("param"):
            name, separator, text = pair.partition("=")
            if not separator:
                raise ValueError(f"`--param` must be NAME=VALUE, got {pair!r}.")
            given[name] = _value("Any", text)
        return given


def _value(annotation: str, text: str) -> Any:
    """Returns the value of a flag: a Python literal, `none`, `true`, `false`, names with commas, or a text."""
    is_text, lower = annotation.startswith("str"), text.lower()
    if lower == "none" and ("None" in annotation or not is_text):
        return None
    if is_text and not text.startswith("{"):
        return text
    value: Any = {"true": True, "false": False}.get(lower, text)
    if value is text and not annotation.startswith("Sequence[str]"):
        with contextlib.suppress(SyntaxError, ValueError):
            value = ast.literal_eval(text)
    if not annotation.startswith("Sequence") or isinstance(value, (list, tuple)):
        return value
    if isinstance(value, str):
        return value if annotation.endswith("| str") else [name for name in value.split(",") if name]
    return [value]


def _taken(given: dict[str, Any], *functions: Callable[..., Any]) -> dict[str, Any]:
    """Takes the arguments of functions from the given ones, and returns them."""
    names = [name for function in functions for name in inspect.signature(function).parameters if name in given]
    return {name: given.pop(name) for name in names}


def _estimator_class(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _train(arguments: Sequence[str]) -> None:
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--estimator", default="ranker")
    chosen = first.parse_known_args(arguments)[0].estimator
    cls = _estimator_class(*_ESTIMATORS[_arguments.choice("--estimator", chosen, tuple(_ESTIMATORS))])
    parser = _Parser("train", cls, cls.fit, *_readers(cls))
    parser.add_argument("table", nargs="+", metavar="TABLE", help=_TABLE)
    parser.add_argument("--estimator", help="ranker (default), recommender or text.")
    parser.add_argument("--model", required=True, help="The file to write, which ends in .keras.")
    given = parser.parsed(arguments)
    given.pop("estimator", None)
    table, model = given.pop("table"), given.pop("model")
    if not model.endswith(".keras"):
        raise ValueError(f"`--model` must end in '.keras', got {model!r}.")
    fit = _taken(given, cls.fit)
    reading = _taken(given, *_readers(cls))
    estimator = cls(**given)  # before files are read
    for name, make in (("init_model", cls.load), ("strategy", training.get_strategy)):
        fit |= {name: make(fit[name])} if name in fit else {}
    fit |= {name: read_table(fit[name]) for name in ("items", "users") if name in fit}
    columns = {name: parameter.default for name, parameter in inspect.signature(cls.fit).parameters.items()}
    paths = [table, *([fit["validation"]] if "validation" in fit else [])]
    parts = _read(cls, paths, {**columns, **fit, **reading})
    fit["validation"] = parts[1] if len(parts) > 1 else None
    estimator.fit(parts[0], **fit)
    estimator.save(model)
    if len(parts) > 1 and not _readers(cls):  # A recommender has the items of its validation.
        print(estimator.evaluate(parts[1]))
    print(f"Wrote {model}")


def _score(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    parser = _Parser("score", *([estimator.recommend] if _readers(type(estimator)) else []))
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("table", nargs="+", metavar="TABLE", help=_TABLE)
    parser.add_argument("out", metavar="OUT", help="The file to write: .csv or .parquet.")
    parser.add_argument("--names", default="score,rank", help="The names of the new columns.")
    parser.add_argument("--user", default="user", help="The column of users to recommend to.")
    given = parser.parsed(arguments)
    out, names = Path(given["out"]), given["names"].split(",")
    writer_class: Any = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter}.get(out.suffix)
    if writer_class is None or len(names) != 2:
        raise ValueError(f"OUT must end in .csv or .parquet, and --names be two names, got {out} and {names}.")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=out.parent, prefix=".unfinished-"))
        unfinished = stack.enter_context(_files.replacing(out))
        parts = _recommended(estimator, given) if _readers(type(estimator)) else _scored(estimator, given, folder)
        writer = None
        for part, scores, ranks in parts:
            if taken := {*names} & {*part.column_names}:
                raise ValueError(f"--names must not be columns of the table, got {sorted(taken)[0]!r}.")
            part = part.append_column(names[0], pa.array(scores)).append_column(names[1], pa.array(ranks))
            writer = writer or stack.enter_context(writer_class(str(unfinished), part.schema))
            writer.write_table(part)
    print(f"Wrote {out}")


def _scored(estimator: Any, given: dict[str, Any], cache_dir: str) -> Iterator[tuple[pa.Table, Any, Any]]:
    """Yields rows of whole queries, their scores and their ranks."""
    lists = _lists(given["table"], {**_columns(estimator), "label": None}, cache_dir=cache_dir)
    blocks = np.flatnonzero(np.diff(lists.starts[1:] // _SCORED)) + 1
    for queries in np.split(np.arange(len(lists)), blocks):
        part = lists.take(queries)
        table = part.table
        scores = estimator.predict(table)
        order, ranks = ranking(part, scores)
        yield table, scores, ranks[np.argsort(order)]
        lists.release()


def _recommended(estimator: Any, given: dict[str, Any]) -> Iterator[tuple[pa.Table, Any, Any]]:
    """Yields users and items, their scores and their ranks."""
    name = given["user"]
    table = read_table(given["table"])
    users = pc.unique(table[_arguments.name("--user", name, table.column_names)]).to_pylist()
    for start in range(0, len(users), _SCORED):
        some = users[start : start + _SCORED]
        top = estimator.recommend(some, **_taken(dict(given), estimator.recommend))
        items, scores = np.asarray(top.items), np.asarray(top.scores)
        rows, places = np.nonzero(np.isfinite(scores))
        table = pa.table({name: pa.array(some).take(pa.array(rows)), "item": items[rows, places]})
        yield table, scores[rows, places], places + 1


def _evaluate(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    parser = _Parser("evaluate", estimator.evaluate, *_readers(type(estimator)))
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("table", nargs="+", metavar="TABLE", help=_TABLE)
    given = parser.parsed(arguments)
    options = _taken(given, estimator.evaluate)
    (part,) = _read(type(estimator), [given.pop("table")], {**_columns(estimator), **given})
    print(estimator.evaluate(part, **options))


def _export(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    parser = _Parser("export", estimator.export)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("folder", metavar="FOLDER", help="The folder of the versions; the file for ONNX.")
    given = parser.parsed(arguments)
    print(f"Wrote {estimator.export(given.pop('folder'), **{k: v for k, v in given.items() if k != 'model'})}")


def _loaded(arguments: Sequence[str]) -> Any:
    """Returns the estimator of the first argument, or one that is not fitted for `--help`."""
    path = next(iter(arguments), "--help")
    if path in ("-h", "--help"):
        return Ranker()
    try:
        with zipfile.ZipFile(path) as file:
            name = json.loads(file.read("estimator.json"))["estimator"]
    except (KeyError, ValueError, zipfile.BadZipFile):
        raise ValueError(f"MODEL must be a file of `tfr-smooth train` or of `save`, got {path!r}.") from None
    return _estimator_class(*next(place for place in _ESTIMATORS.values() if place[1] == name)).load(path)


def _columns(estimator: Any) -> dict[str, Any]:
    """Returns the columns of an estimator by role."""
    if hasattr(estimator, "columns_") and isinstance(estimator.columns_, dict):
        return estimator.columns_
    return dict(estimator._schema.roles) if hasattr(estimator, "_schema") else {}


def _readers(cls: type) -> list[Callable[..., Any]]:
    """Returns the function that makes what a recommender is trained on; others take tables."""
    if cls.__name__ != "Recommender":
        return []
    from tfr_smooth import recommendation

    return [recommendation.from_dataframe]


def _read(cls: type, paths: Sequence[Any], columns: dict[str, Any]) -> list[Any]:
    """Returns what an estimator takes of files: tables, or interactions."""
    for from_tables in _readers(cls):
        parts = from_tables(*map(read_table, paths), **_taken(dict(columns), from_tables))
        return [*parts] if len(paths) > 1 else [parts]
    return [_lists(path, columns).table for path in paths]


def _lists(paths: Any, columns: dict[str, Any], **options: Any) -> data.Lists:
    """Returns the lists of files, given the columns by role."""
    roles = {role: columns[role] for role in _ROLES if columns.get(role) is not None}
    query = columns.get("query_id") or columns.get("query")
    if query is None:
        raise ValueError("`--query` must be the column of queries, got none.")
    return data.read_files(paths, **{"label": None, **roles, "query": query}, **options)
