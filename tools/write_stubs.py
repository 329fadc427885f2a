"""Writes the stubs of the classes generated from the registry, for editors and type checkers: `make stubs`.

python tools/write_stubs.py          # writes tfr_smooth/losses/named.pyi and tfr_smooth/metrics/named.pyi
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
{typing}{imports}

CLASSES: dict[str, type[{base}]]
__all__ = [
{names}]
"""
IMPORTS = {
    "losses": "import tensorflow as tf\n\nfrom tfr_smooth.losses.base import CriterionLoss, MetricLoss, RankingLoss\n"
    "from tfr_smooth.ops.discounts import Discount",
    "metrics": "import tensorflow as tf\n\n"
    "from tfr_smooth.metrics.base import MeanOverLists\nfrom tfr_smooth.ops.discounts import Discount",
}


def annotations(name: str) -> dict[str, str]:
    """The types of the arguments of a class, from the dataclasses of its parts."""
    parts: dict[str, tuple[type, ...]] = {
        **{pair.stem: (pair.ranking.ranking, pair.metric.metric) for pair in registry.PAIRS.values()},
        **{entry.exact.removesuffix("Metric"): (entry.metric,) for entry in registry.METRICS.values()},
        **{entry.loss.removesuffix("Loss"): (entry.criterion,) for entry in registry.BASELINES.values()},
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


def stub(package: Any, base: str) -> str:
    name = package.__name__.rpartition(".")[2]
    header = HEADER.format(
        imports=IMPORTS[name],
        base=base,
        typing="from typing import Any\n\n" if name == "metrics" else "",
        names="".join(f'    "{each}",\n' for each in package.named.__all__),
    )
    return header + "".join(class_stub(each) for each in package.named.CLASSES.values())


def main(arguments: list[str], root: pathlib.Path = ROOT) -> None:
    if arguments not in ([], ["--check"]):
        sys.exit(f"Expected no arguments or --check, got {' '.join(arguments)}.")
    for package, base in ((losses, "RankingLoss"), (metrics, "MeanOverLists")):
        path = root / package.__name__.replace(".", "/") / "named.pyi"
        text = stub(package, base)
        if arguments:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                sys.exit(f"{path.relative_to(root)} is not up to date: run `make stubs`.")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"Wrote {path.relative_to(root)}")


if __name__ == "__main__":
    main(sys.argv[1:])
