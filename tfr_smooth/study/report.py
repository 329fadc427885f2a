"""The report of a study: tables as text, Markdown, LaTeX and CSV, and one HTML page with tables and plots."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfr_smooth import _extras, _files, _plotting
from tfr_smooth.study import plots, tables
from tfr_smooth.study.results import Results, labels
from tfr_smooth.study.titles import ranker_title

_TEMPLATE = "report.html.jinja"
_P_VALUES = "p-values against {}: paired t-test / randomization test, with Bonferroni correction"


def write_report(results: Results, folder: str | os.PathLike[str], *, against: str | None = None) -> str:
    """Writes the tables and plots of a study.

    Writes `DATASET.txt`, `DATASET.md`, `DATASET.tex` and `DATASET.csv` for each data set, where the CSV file contains
    all values without rounding, and `report.html`, a self-contained page with tables, plots and settings.

    Args:
      results: The results.
      folder: An existing folder to write to.
      against: Label of the ranker that the p-values compare the others with, such as the first stage of rerankers, also
        written without rounding to `DATASET_against_LABEL.csv`; None for the best ranker by each measure.

    Returns:
      The tables as text.

    Raises:
      ImportError: If the extra `tfr_smooth[study]` is not installed.

    Example:
      >>> import pathlib, tempfile
      >>> from tfr_smooth import data, study
      >>> folder = tempfile.mkdtemp()
      >>> files = data.write_synthetic_letor(folder, num_queries=(4, 2, 6))
      >>> dataset = study.one_split(files["train"], files["valid"], files["test"])
      >>> plan = study.Study([dataset], [study.Entry("random"), study.Entry("single_feature")], folder)
      >>> failures = plan.run(workers=0)
      >>> text = study.write_report(study.collect(plan), folder)
      >>> sorted(path.name for path in pathlib.Path(folder).glob("data.*"))
      ['data.csv', 'data.md', 'data.tex', 'data.txt']
    """
    with _extras.needed("jinja2", extra="study", by="`write_report`"):
        import jinja2
    folder = Path(folder)
    pages, texts = [], []
    for dataset in results.queries["dataset"].drop_duplicates():
        comparison = tables.compare(results, dataset)
        tested = comparison if against is None else tables.compare(results, dataset, against=against)
        caption, title = tables.caption(results, dataset), _P_VALUES.format(against or "the best ranker")
        for style, written in tables.STYLES.items():
            comment = "% " if style == "latex" else ""
            text = f"{comment}{caption}\n\n{tables.format_table(comparison, style)}\n\n"
            text += f"{comment}{title}\n\n{tables.format_p_values(tested, style)}\n"
            if style == "text":
                texts.append(text)
            if style != "html":
                _files.write_text(folder / f"{dataset}{written.suffix}", [text])
        _files.write_text(folder / f"{dataset}.csv", [comparison.to_csv(index=False)])
        if against is not None:
            name = f"{dataset}_against_{against.replace(' ', '_')}.csv"
            _files.write_text(folder / name, [tested.to_csv(index=False)])
        pages.append(
            {
                "name": dataset,
                "caption": caption,
                "table": tables.format_table(comparison, "html"),
                "p_values": tables.format_p_values(tested, "html"),
                "p_values_title": title,
                "chosen": _chosen(results, dataset),
                "plots": list(_plots(results, dataset, comparison)),
            }
        )
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tfr_smooth.study", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template(_TEMPLATE).render(datasets=pages, settings=results.settings)
    _files.write_text(folder / "report.html", [page])
    return "\n".join(texts)


def _plots(results: Results, dataset: str, comparison: Any) -> Iterator[tuple[str, str]]:
    """Yields the title and the data URI of each plot for which results exist."""
    with _extras.needed("matplotlib", extra="study", by="The report"), _plotting.theme():
        draws = {title: draw(results, dataset, comparison) for title, draw in plots.COMPARISONS.items()}
        draws |= {title: draw(results, dataset) for title, draw in plots.PLOTS.items()}
    for title, figure in draws.items():
        if figure is not None:
            yield title, "data:image/svg+xml;base64," + base64.b64encode(plots.svg(figure)).decode()


def _chosen(results: Results, dataset: str) -> list[dict[str, Any]]:
    """Returns the selected settings of each ranker and fold."""
    jobs = results.jobs[(results.jobs["dataset"] == dataset) & results.jobs["selected"]]
    jobs = jobs[jobs["ranker"].isin(labels(results))].drop_duplicates(["ranker", "fold"])
    return [
        {"ranker": ranker_title(ranker), "folds": [(row.fold, row.settings) for row in rows.itertuples()]}
        for ranker, rows in jobs.groupby("ranker", sort=False)
    ]
