"""Draws the explanation of a score on docs/ranker.md, in docs/images.

python tools/plot_explanation.py  # draws the stored values again
python tools/plot_explanation.py --data=mirovision/data/CSV  # also computes them, from the votes of Eurovision finals
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pandas as pd
from absl import app, flags
from figures import bars, save_both

import tfr_smooth
from tfr_smooth import _files, training

IMAGES = pathlib.Path(__file__).absolute().parents[1] / "docs" / "images"
VALUES = IMAGES / "explanation.json"
ENTRY = {"year": 2022, "voter": "IE", "country": "GB"}

_DATA = flags.DEFINE_string("data", None, "Folder of MIRoVision's tables, https://github.com/Amsterdam-Music-Lab.")


def votes(folder: pathlib.Path) -> pd.DataFrame:
    """The finals since 2015: one row per voting country and entry, labeled with the points."""
    read: dict[str, Any] = {"keep_default_na": False, "na_values": ["NA"]}
    rows, songs, odds, countries = (
        pd.read_csv(next(folder.glob(f"{name}.csv*")), **read)
        for name in ("votes", "contestants", "bookmakers", "countries")
    )
    names = {"to_country": "country", "from_country": "voter", "total_points": "points"}
    rows = rows[(rows["round"] == "final") & (rows["year"] >= 2015)].rename(columns=names)
    rows["points"] = pd.to_numeric(rows["points"]).astype(int)
    songs = songs.rename(columns={"final_running_order": "running_order"})
    odds = odds[odds["round"] == "final"].groupby(["year", "country"])["odds"].median().reset_index()
    rows = rows.merge(songs[["year", "country", "running_order"]]).merge(odds, how="left")
    regions = countries.set_index("country")["region"]
    rows["region"], rows["voter_region"] = rows["country"].map(regions), rows["voter"].map(regions)
    rows["ranking"] = rows["year"].astype(str) + " " + rows["voter"]
    columns = ["ranking", "year", "points", "country", "voter", "region", "voter_region", "odds", "running_order"]
    return rows[columns].reset_index(drop=True)


def measure() -> dict[str, Any]:
    """The arguments of `training.Explanation` for one entry of the last final, as JSON values."""
    rows = votes(pathlib.Path(_DATA.value))
    pairs = [("voter", "country")]
    is_new = rows["year"] == ENTRY["year"]
    train, new = rows[~is_new].drop(columns="year"), rows[is_new & (rows["voter"] == ENTRY["voter"])]
    ranker = tfr_smooth.Ranker(crosses=pairs, kinds={"voter": "id", "country": "id"}, verbose=False)
    ranker.fit(train, label="points", query="ranking", query_features=["voter", "voter_region"])
    print(ranker.evaluate(rows[is_new], by="voter_region", measures=["ndcg"]))
    row = int((new["country"] == ENTRY["country"]).to_numpy().nonzero()[0][0])
    explained = ranker.explain(new, rows=[row])
    print(ranker.rank(new), explained, sep="\n")
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in vars(explained).items()}


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    if _DATA.value:
        _files.write_text(VALUES, [json.dumps(measure(), indent=1) + "\n"])
    explained = training.Explanation(**json.loads(VALUES.read_text(encoding="utf-8")))
    title, values = explained.bars()
    texts: Any = {"title": title, "label": "contribution to the score", "numbers": "{:+.2f}"}
    for path in save_both(IMAGES / "explanation.png", lambda: bars(values, 20, **texts)):
        print(path)


if __name__ == "__main__":
    app.run(main)
