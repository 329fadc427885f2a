"""Propensities by position, and relevance, estimated from click logs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from tfr_smooth import _arguments

__all__ = ["ClickModel", "fit_position_based", "propensities_from_random_rankings", "relevance_from_clicks"]


def propensities_from_random_rankings(positions: Any, clicks: Any) -> np.ndarray:
    r"""Estimates propensities from sessions whose documents were shown in random order.

    $$\hat\theta_k = \bar c_k / \bar c_1$$

    with the click-through rate $\bar c_k$ of position k. (Joachims, Swaminathan and Schnabel, "Unbiased
    Learning-to-Rank with Biased Feedback", WSDM 2017.)

    Args:
      positions: Integers >= 1, [rows]; each position up to the last one must occur.
      clicks: 1 or True for a click, else 0, [rows].

    Returns:
      float64 [positions], the propensities relative to the first position.

    Raises:
      ValueError: If an argument is invalid, or the first position has no click.

    Time O(rows).

    Example:
      >>> from tfr_smooth import clicks
      >>> clicks.propensities_from_random_rankings([1, 2, 1, 2], [1, 0, 1, 1]).tolist()
      [1.0, 0.5]
    """
    positions, clicks = _columns(positions, clicks)
    _check_all_positions(positions)
    shown, rates = np.bincount(positions), np.bincount(positions, clicks)
    return _relative(rates[1:] / shown[1:])


class ClickModel(NamedTuple):
    """A position-based model estimated from clicks.

    Attributes:
      propensities: float64 [positions], relative to the first position.
      relevance: float64 [documents], the probability of a click at the first position; NaN for documents that were not
        shown and without features.
      log_likelihoods: float64 [steps], the mean log-likelihood of a row before each step.

    Example:
      >>> from tfr_smooth import clicks
      >>> model = clicks.fit_position_based([0, 1, 0, 1], [1, 2, 2, 1], [1, 0, 1, 1])
      >>> model.propensities.shape, model.relevance.shape
      ((2,), (2,))
    """

    propensities: np.ndarray
    relevance: np.ndarray
    log_likelihoods: np.ndarray


def fit_position_based(
    documents: Any, positions: Any, clicks: Any, *, features: Any = None, regressor: Any = None, steps: int = 100
) -> ClickModel:
    r"""Estimates propensities and relevance by expectation maximization of $P(C = 1) = \theta_k \gamma_d$.

    The E step computes the probabilities of examination and relevance of each row: 1 for a click, else

    $$P(E = 1) = \frac{\theta_k (1 - \gamma_d)}{1 - \theta_k \gamma_d}, \qquad
      P(R = 1) = \frac{(1 - \theta_k) \gamma_d}{1 - \theta_k \gamma_d}$$

    The M step sets $\theta_k$ to the mean over the rows of position k, and $\gamma_d$ to the mean over the rows of
    document d; with a regressor, to its prediction of this mean from the features. (Wang et al., "Position Bias
    Estimation for Unbiased Learning to Rank in Personal Search", WSDM 2018, Eq. 2: standard EM, and regression EM
    with a regressor.)

    Standard EM separates propensities from relevance only if documents are shown at several positions, such as by
    several rankers or in random order. Regression EM also uses that documents with similar features are shown at
    several positions. It is biased if the position is a function of the features.

    Args:
      documents: Integers >= 0, [rows]: the document that was shown, for a query. Features, if given, have this index.
      positions: Integers >= 1, [rows]; each position up to the last one must occur.
      clicks: 1 or True for a click, else 0, [rows].
      features: [documents, num_features], for the regressor.
      regressor: A regressor of scikit-learn, such as `HistGradientBoostingRegressor()`: `fit` with `sample_weight`, and
        `predict`. None for standard EM.
      steps: Number of EM steps, >= 1.

    Returns:
      The propensities and the relevance. The scale between them is set by a propensity of 1 at the first position.

    Raises:
      ValueError: If an argument is invalid, or the first position has no click.

    Time O(rows) per step, on distinct pairs of document and position, and that of the regressor. Without a regressor,
    no step lowers the likelihood.

    Example:
      >>> import numpy as np
      >>> from tfr_smooth import clicks
      >>> random = np.random.default_rng(0)
      >>> documents, positions = random.integers(20, size=20_000), random.integers(1, 4, size=20_000)
      >>> relevance = np.linspace(0.1, 0.9, 20)
      >>> log = random.random(20_000) < relevance[documents] / positions
      >>> print(clicks.fit_position_based(documents, positions, log).propensities.round(1))
      [1.  0.5 0.3]
    """
    positions, clicks = _columns(positions, clicks)
    _check_all_positions(positions)
    documents = _integers("documents", documents, len(positions), least=0)
    if (features is None) != (regressor is None):
        raise ValueError("`features` and `regressor` must be given together, got only one of them.")
    _arguments.integer("steps", steps, least=1)
    count = int(documents.max()) + 1
    if features is not None:
        features = np.asarray(features)
        if features.ndim != 2 or len(features) < count:
            raise ValueError(f"`features` must have a row for each of {count} documents, got shape {features.shape}.")
        count = len(features)
    # Rows of the same document at the same position are one row with a weight.
    width = int(positions.max())
    pairs, pair_of_row = np.unique(documents * width + positions - 1, return_inverse=True)
    document, position = np.divmod(pairs, width)
    shown, clicked = np.bincount(pair_of_row), np.bincount(pair_of_row, clicks)
    missed = shown - clicked
    shown_of = {"position": np.bincount(position, shown, width), "document": np.bincount(document, shown, count)}
    seen = shown_of["document"] > 0

    _relative(np.bincount(position, clicked))  # raises an error if the first position has no click
    theta, gamma = np.full(width, 0.5), np.full(count, 0.5)
    likelihoods = []
    for _ in range(steps):
        rate = theta[position] * gamma[document]
        terms = special.xlogy(clicked, rate) + special.xlog1py(missed, -rate)  # 0 log 0 is 0
        likelihoods.append(terms.sum() / len(positions))
        neither = np.where(rate < 1.0, 1.0 - rate, 1.0)
        examined = clicked + missed * theta[position] * (1.0 - gamma[document]) / neither
        relevant = clicked + missed * gamma[document] * (1.0 - theta[position]) / neither
        theta = np.bincount(position, examined, width) / shown_of["position"]
        gamma = np.bincount(document, relevant, count) / np.maximum(shown_of["document"], 1.0)
        if regressor is not None:
            regressor.fit(features[seen], gamma[seen], sample_weight=shown_of["document"][seen])
            gamma = np.clip(regressor.predict(features), 1e-6, 1.0)
    relevance = np.where(seen | (regressor is not None), gamma * theta[0], np.nan)
    return ClickModel(_relative(theta), relevance, np.array(likelihoods))


def relevance_from_clicks(documents: Any, positions: Any, clicks: Any, propensities: Any, offsets: Any = 0.0) -> Any:
    r"""Estimates the relevance of each document as its mean corrected click.

    $$\hat\gamma_d = \frac{1}{n_d} \sum_{i: d_i = d} \frac{c_i - \beta_{k_i}}{\alpha_{k_i}}$$

    (Vardasbi, Oosterhuis and de Rijke, "When Inverse Propensity Scoring does not Work: Affine Corrections for Unbiased
    Learning to Rank", CIKM 2020.) With offsets of 0, this is inverse propensity scoring, which does not remove trust
    bias. Unbiased if $P(C = 1) = \alpha_k \gamma_d + \beta_k$. Use it as the label, with a linear gain; estimates
    below 0 must be clipped, which adds some bias for documents with few clicks.

    Args:
      documents: Integers >= 0, [rows]: the document that was shown, for a query.
      positions: Integers >= 1, [rows].
      clicks: 1 or True for a click, else 0, [rows].
      propensities: Alpha > 0 by position, [positions].
      offsets: Beta by position, [positions], or a number.

    Returns:
      float64 [documents], NaN for documents that were not shown.

    Raises:
      ValueError: If an argument is invalid.

    Time O(rows).

    Example:
      >>> from tfr_smooth import clicks
      >>> clicks.relevance_from_clicks([0, 0, 2], [1, 2, 2], [1, 0, 1], [1.0, 0.5]).tolist()
      [0.5, nan, 2.0]
    """
    positions, clicks = _columns(positions, clicks)
    documents = _integers("documents", documents, len(positions), least=0)
    propensities = np.asarray(propensities, np.float64)
    if propensities.ndim != 1 or len(propensities) < positions.max() or not (propensities > 0.0).all():
        raise ValueError(f"`propensities` must be > 0 for each of {positions.max()} positions, got {propensities}.")
    offsets = np.broadcast_to(np.asarray(offsets, np.float64), propensities.shape)
    corrected = (clicks - offsets[positions - 1]) / propensities[positions - 1]
    with np.errstate(invalid="ignore"):
        return np.bincount(documents, corrected) / np.bincount(documents)


def _relative(rates: np.ndarray) -> np.ndarray:
    """Returns the rates relative to the first one."""
    if not rates[0] > 0.0:
        raise ValueError("`clicks` must include a click at the first position, got none.")
    return rates / rates[0]


def _columns(positions: Any, clicks: Any) -> tuple[np.ndarray, np.ndarray]:
    """Returns the checked positions and clicks, as int64 and float64."""
    clicks = np.asarray(clicks, np.float64)
    if clicks.ndim != 1 or not len(clicks) or not np.isin(clicks, (0.0, 1.0)).all():
        raise ValueError(f"`clicks` must be 0 or 1, [rows], at least one, got {clicks}.")
    return _integers("positions", positions, len(clicks), least=1), clicks


def _check_all_positions(positions: np.ndarray) -> None:
    missing = np.flatnonzero(np.bincount(positions)[1:] == 0)
    if len(missing):
        raise ValueError(f"`positions` must include each position up to the last one, got none at {missing[0] + 1}.")


def _integers(name: str, values: Any, rows: int, *, least: int) -> np.ndarray:
    """Returns values as int64 [rows], all >= `least`."""
    array = np.asarray(values)
    if array.shape != (rows,) or array.dtype.kind not in "iu" or array.min() < least:
        lowest = f" from {array.min()} on" if array.size and array.dtype.kind in "iuf" else ""
        got = f"{array.dtype} {array.shape}{lowest}"
        hint = "; `pandas.factorize` numbers ids" if name == "documents" else ""
        raise ValueError(f"`{name}` must be integers >= {least}, one for each of {rows} rows, got {got}{hint}.")
    return array.astype(np.int64)
