"""The command `tfr-smooth`: trains, evaluates and exports an estimator, and scores rows, from files to files.

The flags are the arguments of the constructor and of the methods of the estimator, with their names and descriptions.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import dataclasses
import functools
import inspect
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from pyarrow import parquet

from tfr_smooth import Ranker, _arguments, _estimator, _files, data, load, training
from tfr_smooth.columns.kinds import listed
from tfr_smooth.data.reading.files import files_of, raw_table
from tfr_smooth.data.reading.sources import Files, ranking
from tfr_smooth.data.reading.value_types import Reading

_ESTIMATORS = {"ranker": "Ranker", "text": "TextRanker"}
_COMMANDS = {
    "train": "TABLE .. --model=FILE.keras [--validation=TABLE] [--estimator=ranker|text]",
    "score": "MODEL TABLE .. OUT.csv|OUT.parquet",
    "evaluate": "MODEL TABLE ..",
    "export": "MODEL FOLDER",
}
_FILES = ("validation", "init_model", "strategy")  # arguments of `fit` that flags name
_PLAIN = re.compile(r"(str|int|float|bool|Mapping|Sequence\[(str|int|float|tuple))\b")  # annotations of other flags
_NO_FLAGS = ("path", "by_query")
_READING = tuple(field.name for field in dataclasses.fields(Reading))
_ARGUMENT = re.compile(r"^  (\w+): (.*(?:\n    .*)*)", re.M)  # in a docstring
_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""  # as `repr` writes it
_IN_PYTHON = re.compile(rf"\b(kinds|nulls|decimal)=(\{{{_TEXT}: {_TEXT}\}}|\[{_TEXT}\]|{_TEXT})")  # in hints
_ROWS = 1 << 16  # that are written at once; not tuned


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
      argv: The arguments after the name of the command. None: those of the process.

    Returns:
      The exit status: 0, 2 after an error, which is one line on stderr, or 130 after an interruption.
    """
    command, *arguments = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if argv is None:  # Unfinished files are removed then, too.
        warnings.formatwarning = lambda message, *_: f"tfr-smooth: warning: {_with_flags(str(message))}\n"
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if command in ("-h", "--help"):
            print("\n".join(f"tfr-smooth {name} {about} [FLAG ..]" for name, about in _COMMANDS.items()))
            print("The flags: tfr-smooth train --help [--estimator=..], or tfr-smooth COMMAND MODEL --help")
        else:
            _arguments.choice("command", command, _COMMANDS)
            {"train": _train, "score": _score, "evaluate": _evaluate, "export": _export}[command](arguments)
        return 0
    except (ValueError, OSError, ImportError, pa.ArrowException, tf.errors.OpError) as error:
        print(f"tfr-smooth: error: {_with_flags(' '.join(str(error).split()))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(error or "Interrupted.", file=sys.stderr)
        return 130


def _with_flags(message: str) -> str:
    """Returns a message with flags, as a shell takes them, in place of the arguments that a hint names."""

    def flag(found: re.Match[str]) -> str:
        value = ast.literal_eval(found[2])
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else "".join(value)
        return f"--{found[1]}='" + text.replace("'", "'\"'\"'") + "'"

    return re.sub("`(kinds|features|types)`", r"`--\1`", _IN_PYTHON.sub(flag, message.replace(" of the readers", "")))


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
                if function is data.read_files and name not in _READING:
                    continue
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
    cls = _estimator.estimator_class(_ESTIMATORS[_arguments.choice("--estimator", chosen, _ESTIMATORS)])
    parser = _Parser("train", cls, cls.fit, data.read_files)
    parser.add_argument("--estimator", help="ranker (default) or text.")
    parser.add_argument("--model", required=True, help="The file to write, which ends in .keras.")
    given = parser.parsed(arguments)
    given.pop("estimator", None)
    table, model = given.pop("table"), given.pop("model")
    if not model.endswith(".keras"):
        raise ValueError(f"--model must end in '.keras', got {model!r}.")
    _check_folder("--model", Path(model))
    fit, reading = _taken(given, cls.fit), Reading(**_taken(given, Reading))
    if cls is Ranker:  # The model knows their formats then.
        dates = {name: kind for name, kind in reading.types.items() if kind.startswith("date:")}
        given |= {"kinds": {**dates, **(given.get("kinds") or {})}} if dates else {}
    estimator = cls(**given)  # before files are read
    files = functools.partial(Files, reading=reading)
    makers = {"init_model": cls.load, "strategy": training.get_strategy, "validation": files}
    fit |= {name: make(fit[name]) for name, make in makers.items() if name in fit}
    estimator.fit(files(table), **fit)
    estimator.save(model)
    print(f"Wrote {model}")
    if "validation" in fit:
        print(estimator.evaluate(fit["validation"]))


def _score(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    parser = _Parser("score", data.read_files)
    parser.add_argument("--names", default="score,rank", help="The names of the new columns. Default: score,rank.")
    given = parser.parsed(arguments)
    of_texts = {} if isinstance(estimator, Ranker) else estimator.columns_
    types = dict.fromkeys((of_texts["query"], of_texts["text"]), "text") if of_texts else estimator.types_
    reading = Reading(**_taken(given, Reading)).with_types(types)
    out, paths, names = Path(given["out"]), given["table"], given["names"].split(",")
    if out.suffix not in (".csv", ".parquet"):
        raise ValueError(f"OUT must end in .csv or .parquet, got {given['out']!r}.")
    _check_folder("OUT", out)
    read = [given["model"], *files_of(paths, reading)]
    if out.exists() and any(os.path.exists(path) and out.samefile(path) for path in read):
        raise ValueError(f"OUT must not be a file that is read, got {given['out']!r}.")
    table = raw_table(paths, reading)
    columns = table.column_names
    if len(names) != 2 or len({*columns, *names}) < len(columns) + 2:
        expected = f"SCORE,RANK, two different names that are none of {listed(columns)}"
        raise ValueError(f"--names must be {expected}, got {given['names']!r}.")
    query = estimator.query_column
    if query not in columns:
        query = of_texts.get("query", query)
    if query is None:
        raise ValueError("MODEL must have a column of queries, got one that was trained without.")
    lists = data.from_table(table, query=query, label=None, features=[query])
    scores = estimator.predict(Files(paths, reading))
    order, ranks = ranking(lists, scores[lists.rows])
    for name, column in zip(names, (scores, ranks[np.argsort(lists.rows[order])]), strict=True):
        table = table.append_column(name, pa.array(column))
    with _files.replacing(out) as unfinished:
        if out.suffix == ".csv":
            _write_csv(unfinished, table, reading)
        else:
            parquet.write_table(table, unfinished)
    print(f"Wrote {out}")


def _write_csv(path: Path, table: pa.Table, reading: Reading) -> None:
    with open(path, "w", encoding=reading.encoding, newline="") as file:
        writer = csv.writer(file, delimiter=reading.delimiter or ",", lineterminator="\n")
        writer.writerow(table.column_names)
        for part in table.to_batches(max_chunksize=_ROWS):
            texts = [_cells(name, part[name], reading.decimal) for name in table.column_names]
            writer.writerows(zip(*texts, strict=True))


def _cells(name: str, column: pa.Array, decimal: str) -> list[str | None]:
    """Returns the cells of a column; None for missing values, which `csv` writes as no text."""
    try:
        texts = column.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        expected = f"a Parquet file for column {name!r} of the type {column.type}, which CSV files cannot have"
        raise ValueError(f"OUT must be {expected}.") from None
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        texts = pc.replace_substring(texts, ".", decimal)
    return texts.to_pylist()


def _evaluate(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    given = _Parser("evaluate", estimator.evaluate, data.read_files).parsed(arguments)
    table = Files(given["table"], Reading(**_taken(given, Reading)))
    print(estimator.evaluate(table, **_taken(given, estimator.evaluate)))


def _export(arguments: Sequence[str]) -> None:
    estimator = _loaded(arguments)
    given = _Parser("export", estimator.export).parsed(arguments)
    del given["model"]
    print(f"Wrote {estimator.export(given.pop('folder'), **given)}")


def _loaded(arguments: Sequence[str]) -> Any:
    """Returns the estimator of the first argument, or one that is not fitted for `--help`."""
    path = next(iter(arguments), "--help")
    if path in ("-h", "--help"):
        return Ranker()
    try:
        estimator = load(path)
    except ValueError as error:
        raise ValueError(str(error).replace("`path`", "MODEL", 1)) from None
    if hasattr(estimator, "recommend"):
        raise ValueError(f"MODEL must be a ranker of `tfr-smooth train` or of `save`, got {path!r}.")
    return estimator


def _check_folder(argument: str, path: Path) -> None:
    if not os.access(path.parent, os.W_OK) or path.is_dir():
        raise ValueError(f"{argument} must be a file in a folder that can be written, got {str(path)!r}.")
