"""The diagnosis of a smooth metric on a model's scores, and the recommended temperature."""

import numpy as np
import pytest
from scipy import stats

from experiments import smoothness
from tests.helpers import references
from tfr_smooth import losses

# List 2 is in its best order, list 3 has no relevant document.
LABELS = np.array([[0, 2, 1, 0, -1], [1, 0, 0, 2, 0], [2, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 1, 0]], np.float32)
SCORES = np.array(
    [[3, 2, 1.5, 0, 9], [4, 1, 0, 1.2, 0.1], [5, 2, 1, 0.5, 0], [1, 2, 3, 4, 5], [0, 1, 0.5, 2, 3]], np.float32
)


def diagnose(loss, batches=((SCORES, LABELS),), values=(2.0,), **arguments):
    """Diagnoses a model whose scores are its inputs."""
    return smoothness.diagnose_smoothness(lambda scores: scores, batches, loss, values=values, **arguments)


@pytest.mark.slow
def test_the_report_matches_the_definitions():
    values = (0.2, 60.0)
    report = diagnose(losses.SmoothINDCGLoss(topn=3), values=values)
    assert report.hyperparameter == "alpha" and tuple(row.value for row in report.rows) == values
    lists = [(LABELS[i][LABELS[i] >= 0], SCORES[i][LABELS[i] >= 0]) for i in (0, 1, 2, 4)]
    exact = np.array([references.exact_ndcg(*one, topn=3) for one in lists])
    assert exact[2] == 1.0
    for row in report.rows:
        found = [references.smoothi_ndcg(*one, alpha=row.value, topn=3) for one in lists]
        smooth = np.array([value for value, _ in found])
        norms = np.array([np.linalg.norm(gradient) for _, gradient in found])[exact < 1.0]
        assert row.smooth == pytest.approx(smooth.mean(), rel=1e-5)
        assert row.exact == pytest.approx(exact.mean(), rel=1e-5)
        assert row.gap == pytest.approx(np.abs(smooth - exact).mean(), rel=1e-4, abs=1e-6)
        assert row.vanishing_share == pytest.approx((norms < max(1e-3 * np.median(norms), 1e-6)).mean())
        assert row.correlation == pytest.approx(stats.spearmanr(smooth, exact).statistic)


def test_a_vanishing_gradient_is_small_or_much_smaller_than_the_median():
    cases = [([1.0, 1.0, 2e-3, 5e-4], 0.25), ([1e-3, 1e-3, 2e-6, 5e-7], 0.25), ([1e-7, 2e-7, 4e-7], 1.0)]
    for norms, share in cases:
        # The last list is in its best order.
        exact, best = np.full(len(norms) + 1, 0.5), np.append(np.full(len(norms), 0.6), 0.5)
        assert smoothness._summary(exact, exact, best, np.append(norms, 0.0))["vanishing_share"] == share


@pytest.mark.parametrize(
    ("gaps", "shares", "recommended", "reason"),
    [
        ([0.3, 0.2, 0.1], [0.0, 0.05, 0.06], 2.0, "the smallest gap among values with a gradient for at least 95% of"),
        ([0.1, 0.2, 0.3], [0.9, 0.5, 0.4], 3.0, "the smallest share of vanishing gradients; it exceeds 5%"),
    ],
)
def test_the_recommended_value_and_its_reason(monkeypatch, gaps, shares, recommended, reason):
    rows = {float(i): {"gap": gaps[i - 1], "vanishing_share": shares[i - 1]} for i in (1, 2, 3)}

    def scripted(model, loss, ranking):
        return lambda dataset: {"smooth": 0.5, "exact": 0.5, "correlation": 1.0, **rows[ranking.alpha]}

    monkeypatch.setattr(smoothness, "_measurement", scripted)
    report = diagnose(losses.SmoothINDCGLoss(), values=tuple(rows))
    assert report.recommended == recommended and report.reason.startswith(reason)
    assert str(report).splitlines()[-1] == f"Recommended: alpha={recommended:g}, {report.reason}."


def test_bad_arguments_are_refused():
    for arguments, message in (
        ({"loss": losses.ListNetLoss()}, "`loss` must be a `tfr_smooth.losses.MeasureLoss`, got ListNet"),
        ({"batches": [(SCORES, 0.0 * LABELS)]}, "`dataset` must have a list with a relevant document, got none."),
        ({"batches": [(SCORES * np.nan, LABELS)]}, "`model` must return finite scores for finite labels, got NaN."),
    ):
        with pytest.raises(ValueError, match=message):
            diagnose(**{"loss": losses.ApproxNDCGLoss(), **arguments})
