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

# By name: the package and the class, which may need optional packages.
_ESTIMATORS = {
    "ranker": ("tfr_smooth", "Ranker"),
    "recommender": ("tfr_smooth.recommendation", "Recommender"),
    "text": ("tfr_smooth.text", "TextRanker"),
}
_COMMANDS = {
    "train": "TABLE .. --model=FILE.keras [--validation=TABLE] [--estimator=ranker|recommender|text]",
    "score": "MODEL TABLE .. OUT.csv|OUT.parquet",
    "evaluate": "MODEL TABLE ..",
    "export": "MODEL FOLDER",
}
_FILES = ("validation", "items", "users", "init_model", "strategy")  # arguments of `fit` that flags name
_PLAIN = re.compile(r"(str|int|float|bool|Mapping|Sequence\[(str|int|float|tuple))\b")  # annotations of other flags
_NO_FLAGS = ("path", "by_query")
_ARGUMENT = re.compile(r"^  (\w+): (.*(?:\n    .*)*)", re.M)  # in a docstring
_ROLES = ("query", "label", "weight", "propensity", "features")
_SCORED = 1 << 16  # documents, in whole queries, or users that are scored at once


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
      argv: The arguments after the name of the command. None: those of the process.

    Returns:
      The exit status: 0, 2 after an error, which is one line on stderr, or 130 after an interruption.
    """
    command, *arguments = (sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        if command in ("-h", "--help"):
            print("\n".join(f"tfr-smooth {name} {about} [FLAG ..]" for name, about in _COMMANDS.items()))
            print("The flags: tfr-smooth train --help [--estimator=..], or tfr-smooth COMMAND MODEL --help")
        else:
            _arguments.choice("command", command, tuple(_COMMANDS))
            {"train": _train, "score": _score, "evaluate": _evaluate, "export": _export}[command](arguments)
        return 0
    except (ValueError, OSError, ImportError, pa.ArrowException) as error:
        print(f"tfr-smooth: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(error or "Interrupted.", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    """The parser of a command, whose flags are the arguments of functions and their descriptions."""

    def __init__(self, command: str, *functions: Callable[..., Any]) -> None:
        usage = f"tfr-smooth {command} {_COMMANDS[command]} [FLAG ..]"
        super().__init__(usage=usage, allow_abbrev=False, argument_default=argparse.SUPPRESS)
        for place in re.findall(r"MODEL|TABLE|OUT\b|FOLDER", _COMMANDS[command].partition(" --")[0].partition("|")[0]):
            self.add_argument(place.lower(), metavar=place, nargs="+" if place == "TABLE" else None)
        for function in functions:
            about = dict(_ARGUMENT.findall(inspect.getdoc(function) or ""))
            for name, parameter in inspect.signature(function).parameters.items():
                is_file = function.__name__ == "fit" and name in _FILES
                annotation, default = "str" if is_file else str(parameter.annotation), parameter.default
                if name not in _NO_FLAGS and _PLAIN.match(annotation):
                    text = " ".join(about.get(name, "").split()).replace("%", "%%")
                    text += "" if default in (parameter.empty, None, ()) else f" Default: {default}."
                    options: dict[str, Any] = {"required": default is parameter.empty, "help": text, "metavar": "VALUE"}
                    self.add_argument(f"--{name}", type=functools.partial(_value, annotation), **options)
        text = "A further argument, such as a hyperparameter of the loss; may be repeated."
        self.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help=text)

    def error(self, message: str) -> NoReturn:
        """Raises a `ValueError`, which ends the command in one line."""
        raise ValueError(message)

    def parsed(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Returns what is given, by name."""
        values, others = self.parse_known_args(arguments)
        if others:
            flags = [name for action in self._actions for name in action.option_strings]
            raise ValueError(f"unknown argument {others[0]}.{_arguments.hint(others[0].partition('=')[0], flags)}")
        given = vars(values)
        for name, separator, text in (pair.partition("=") for pair in given.pop("param")):
            if not separator:
                raise ValueError(f"--param must be NAME=VALUE, got {name!r}.")
            given[name] = _value("Any", text)
        return given


def _value(annotation: str, text: str) -> Any:
    """Returns the value of a flag: a Python literal, `none`, `true`, `false`, names with commas, or a text."""
    is_text = annotation.startswith("str")
    if text.lower() == "none" and ("None" in annotation or not is_text):
        return None
    if is_text and not text.startswith("{"):
        return text
    value: Any = {"true": True, "false": False}.get(text.lower(), text)
    if not isinstance(value, bool) and not annotation.startswith("Sequence[str]"):
        with contextlib.suppress(SyntaxError, ValueError):
            value = ast.literal_eval(text)
    if isinstance(value, str) and not annotation.endswith("| str"):
        return value.split(",") if annotation.startswith("Sequence") else value
    return [value] if annotation.startswith("Sequence") and isinstance(value, (int, float)) else value


def _taken(given: dict[str, Any], *functions: Callable[..., Any]) -> dict[str, Any]:
    """Takes the arguments of functions from the given ones, and returns them."""
    names = [name for function in functions for name in inspect.signature(function).parameters if name in given]
    return {name: given.pop(name) for name in names}


def _train(arguments: Sequence[str]) -> None:
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--estimator", default="ranker")
    chosen = first.parse_known_args(arguments)[0].estimator
    cls = _class(*_ESTIMATORS[_arguments.choice("--estimator", chosen, tuple(_ESTIMATORS))])
    parser = _Parser("train", cls, cls.fit, *_readers(cls))
    parser.add_argument("--estimator", help="ranker (default), recommender or text.")
    parser.add_argument("--model", required=True, help="The file to write, which ends in .keras.")
    given = parser.parsed(arguments)
    given.pop("estimator", None)
    table, model = given.pop("table"), given.pop("model")
    if not model.endswith(".keras"):
        raise ValueError(f"--model must end in '.keras', got {model!r}.")
    fit, reading = _taken(given, cls.fit), _taken(given, *_readers(cls))
    estimator = cls(**given)  # before files are read
    makers = {"init_model": cls.load, "strategy": training.get_strategy, "items": read_table, "users": read_table}
    fit |= {name: make(fit[name]) for name, make in makers.items() if name in fit}
    columns = {name: parameter.default for name, parameter in inspect.signature(cls.fit).parameters.items()}
    paths = [table, *([fit.pop("validation")] if "validation" in fit else [])]
    part, *validation = _read(cls, paths, {**columns, **fit, **reading})
    estimator.fit(part, validation=validation[0] if validation else None, **fit)
    estimator.save(model)
    if validation and not _readers(cls):  # A recommender has the items of its validation.
        print(estimator.evaluate(validation[0]))
    print(f"Wrote {model}")


def _score(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    recommends = bool(_readers(type(estimator)))
    parser = _Parser("score", *([estimator.recommend] if recommends else []))
    parser.add_argument("--names", default="score,rank", help="The names of the new columns.")
    if recommends:
        parser.add_argument("--user", default="user", help="The column of users.")
    given = parser.parsed(arguments)
    out, (score, rank) = Path(given["out"]), given["names"].split(",")
    writer_class: Any = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter}.get(out.suffix)
    if writer_class is None:
        raise ValueError(f"OUT must end in .csv or .parquet, got {given['out']!r}.")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=out.parent, prefix=".unfinished-"))
        unfinished = stack.enter_context(_files.replacing(out))
        writer = None
        for table, scores, ranks in (_recommended if recommends else _scored)(estimator, given, folder):
            if names := {score, rank} & {*table.column_names}:
                raise ValueError(f"--names must not be columns of the table, got {names.pop()!r}.")
            table = table.append_column(score, pa.array(scores)).append_column(rank, pa.array(ranks))
            writer = writer or stack.enter_context(writer_class(str(unfinished), table.schema))
            writer.write_table(table)
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


def _recommended(estimator: Any, given: dict[str, Any], cache_dir: str) -> Iterator[tuple[pa.Table, Any, Any]]:
    """Yields users and items, their scores and their ranks."""
    name, table, options = given["user"], read_table(given["table"]), _taken(given, estimator.recommend)
    users = pc.unique(table[_arguments.name("--user", name, table.column_names)])
    for start in range(0, len(users), _SCORED):
        some = users.slice(start, _SCORED)
        top = estimator.recommend(some.to_pylist(), **options)
        rows, places = np.nonzero(np.isfinite(top.scores))
        found = {name: some.take(pa.array(rows)), "item": np.asarray(top.items)[rows, places]}
        yield pa.table(found), np.asarray(top.scores)[rows, places], places + 1


def _evaluate(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    cls = type(estimator)
    given = _Parser("evaluate", estimator.evaluate, *_readers(cls)).parsed(arguments)
    options = _taken(given, estimator.evaluate)
    (part,) = _read(cls, [given["table"]], {**_columns(estimator), **given})
    print(estimator.evaluate(part, **options))


def _export(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    given = _Parser("export", estimator.export).parsed(arguments)
    del given["model"]
    print(f"Wrote {estimator.export(given.pop('folder'), **given)}")


def _class(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


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
    return _class(*next(place for place in _ESTIMATORS.values() if place[1] == name)).load(path)


def _columns(estimator: Any) -> dict[str, Any]:
    """Returns the columns of a ranker by role; none for a recommender."""
    roles = estimator._schema.roles if isinstance(estimator, Ranker) else getattr(estimator, "columns_", {})
    return dict(roles)


def _readers(cls: type) -> list[Callable[..., Any]]:
    """Returns the function that makes what a recommender is trained on; others take tables."""
    return [_class("tfr_smooth.recommendation", "from_dataframe")] if cls.__name__ == "Recommender" else []


def _read(cls: type, paths: Sequence[Any], columns: dict[str, Any]) -> Sequence[Any]:
    """Returns what an estimator takes of each path: a table, or interactions."""
    for from_tables in _readers(cls):
        parts = from_tables(*map(read_table, paths), **_taken(dict(columns), from_tables))
        return parts if len(paths) > 1 else [parts]
    return [_lists(path, columns).table for path in paths]


def _lists(paths: Any, columns: dict[str, Any], **options: Any) -> data.Lists:
    """Returns the lists of files, given the columns by role."""
    roles = {role: columns[role] for role in _ROLES if columns.get(role) is not None}
    roles["query"] = columns.get("query_id") or columns.get("query")
    if roles["query"] is None:
        raise ValueError("--query must be the column of queries, got none.")
    return data.read_files(paths, **{"label": None, **roles}, **options)
