"""Logs a ranker to MLflow: its arguments, training curves, measures and export, and a model that scores tables.

    pip install '.[evaluation,pandas]' mlflow
    python examples/mlflow_ranker.py

It trains a ranker on a made-up table of offers in place of yours, and prints the address of the model. Copy `Scorer`,
`log_ranker` and the call of `set_model` to a file of your own: MLflow stores this file with the model and runs it where
the model is loaded, so that nothing is pickled.
"""

from __future__ import annotations

import tempfile
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import tensorflow as tf

import tfr_smooth


class Scorer(mlflow.pyfunc.PythonModel):
    """The model of MLflow: a table to scores."""

    def load_context(self, context: Any) -> None:
        self.ranker = tfr_smooth.Ranker.load(context.artifacts["ranker"])

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> np.ndarray:
        return self.ranker.predict(model_input)


def log_ranker(ranker: tfr_smooth.Ranker, test: pd.DataFrame, description: str) -> str:
    """Logs a fitted ranker in the active run, with its measures of a test table.

    Returns:
      The address of the model.
    """
    mlflow.log_params(ranker.get_params())
    for name, values in ranker.history_.items():
        for epoch, value in enumerate(values, start=1):
            mlflow.log_metric(name, value, step=epoch)
    measured = ranker.evaluate(test, measures=["ndcg_cut_10", "recip_rank"])
    for name, (mean, error) in measured.items():  # with the 95% interval
        interval = {"low": mean - 1.96 * error, "high": mean + 1.96 * error}
        mlflow.log_metrics({f"test_{name}": mean, **{f"test_{name}_{end}": value for end, value in interval.items()}})
    mlflow.log_text(str(ranker.columns_), "columns.txt")
    with tempfile.TemporaryDirectory() as folder:
        card = {"description": description, "measures": {name: each.mean for name, each in measured.items()}}
        export = ranker.export(f"{folder}/export", card=card, warmup=False)
        mlflow.log_artifact(str(export / "assets.extra" / "model_card.json"))
        mlflow.log_artifacts(f"{folder}/export", "export")
        ranker.save(f"{folder}/ranker.keras")
        logged = mlflow.pyfunc.log_model(
            name="ranker",
            python_model=__file__,
            artifacts={"ranker": f"{folder}/ranker.keras"},
            pip_requirements=[f"{package.__name__}=={package.__version__}" for package in (tfr_smooth, tf, pd)],
        )
    return logged.model_uri


def main() -> None:
    random = np.random.default_rng(0)
    offers = pd.DataFrame({"search": np.repeat(np.arange(200), 10), "price": random.gamma(2.0, 50.0, 2000)})
    offers["brand"] = random.choice(["acme", "umbrella"], 2000)
    costs = offers["price"] + np.where(offers["brand"] == "acme", 0.0, 50.0) + random.gamma(1.0, 50.0, 2000)
    offers["label"] = (costs < 100.0).astype(int)
    train, test = offers[offers["search"] < 150], offers[offers["search"] >= 150]
    with mlflow.start_run():
        ranker = tfr_smooth.Ranker(epochs=5, verbose=False).fit(train, label="label", query="search", validation=test)
        print(log_ranker(ranker, test, "Ranks made-up offers."))


mlflow.models.set_model(Scorer())
if __name__ == "__main__":
    main()
