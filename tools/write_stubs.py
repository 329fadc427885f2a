"""Writes the stubs of the classes generated from the registry, for editors and type checkers: `make stubs`.

python tools/write_stubs.py          # writes measure_losses.pyi and measure_metrics.pyi
python tools/write_stubs.py --check  # fails if the stubs are not up to date
"""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import sys
from typing import Any

from tfr_smooth import losses, metrics, registry

ROOT = pathlib.Path(__file__).absolute().parents[1]
COMMON = {
    "ragged": "bool",
    "name": "str | None",
    "reduction": "str | None",
    "no_relevant": "str",
    "dtype": "Any",
}
HEADER = """\
# Written by tools/write_stubs.py from the registry: `make stubs`.
from typing import Any

import tensorflow as tf

{imports}
from tfr_smooth.rankings.dcg import {dcg}

CLASSES: dict[str, type[{base}]]
__all__ = [
{names}]
"""
# By package, the import of the base classes, and the types that only some signatures use.
IMPORTS = {
    "losses": ("from tfr_smooth.losses.ranking_loss import MeasureLoss, RankingLoss", "Discount"),
    "metrics": ("from tfr_smooth.metrics.mean_over_lists import MeanOverLists", "Discount, TensorFunction"),
}


def annotations(name: str) -> dict[str, str]:
    """The types of the arguments of a class, from the dataclasses of its parts."""
    parts: dict[str, tuple[type, ...]] = {
        **{pair.stem: (pair.ranking, pair.measure) for pair in registry.PAIRS.values()},
        **{measure.about.exact.removesuffix("Metric"): (measure,) for measure in registry.EXACT.values()},
    }
    stem = name.removesuffix("Loss").removesuffix("Metric")
    return {field.name: str(field.type) for part in parts[stem] for field in dataclasses.fields(part)} | COMMON


def literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def class_stub(described: type) -> str:
    types = annotations(described.__name__)
    parameters = list(inspect.signature(described.__init__).parameters.values())[1:]
    arguments = [f"{p.name}: {types[p.name]} = {literal(p.default)}" for p in parameters]
    lines = "".join(f"        {argument},\n" for argument in arguments)
    summary = (described.__doc__ or "").partition("\n")[0]
    prefix = "r" if "\\" in summary else ""
    return (
        f'\nclass {described.__name__}({described.__base__.__name__}):\n    {prefix}"""{summary}"""\n\n'
        f"    def __init__(\n        self,\n        *,\n{lines}    ) -> None: ...\n"
    )


def module(package: Any) -> Any:
    return getattr(package, f"measure_{package.__name__.rpartition('.')[2]}")


def stub(package: Any, base: str) -> str:
    name = package.__name__.rpartition(".")[2]
    imports, dcg = IMPORTS[name]
    header = HEADER.format(
        imports=imports,
        dcg=dcg,
        base=base,
        names="".join(f'    "{each}",\n' for each in module(package).__all__),
    )
    return header + "".join(class_stub(each) for each in module(package).CLASSES.values())


def main(arguments: list[str], root: pathlib.Path = ROOT) -> None:
    if arguments not in ([], ["--check"]):
        sys.exit(f"Expected no arguments or --check, got {' '.join(arguments)}.")
    for package, base in ((losses, "RankingLoss"), (metrics, "MeanOverLists")):
        path = pathlib.Path(root / module(package).__name__.replace(".", "/")).with_suffix(".pyi")
        text = stub(package, base)
        if arguments:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                sys.exit(f"{path.relative_to(root)} is not up to date: run `make stubs`.")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"Wrote {path.relative_to(root)}")


if __name__ == "__main__":
    main(sys.argv[1:])
