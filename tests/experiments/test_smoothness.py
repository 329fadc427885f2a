"""The diagnosis of a smooth metric on a model's scores, and the recommended temperature."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from experiments import smoothness
from tests.helpers import references
from tests.helpers.facts import RELAXATIONS
from tfr_smooth import losses, measures, models, rankings

# List 2 is in its best order, list 3 has no relevant document.
LABELS = np.array([[0, 2, 1, 0, -1], [1, 0, 0, 2, 0], [2, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 1, 0]], np.float32)
SCORES = np.array(
    [[3, 2, 1.5, 0, 9], [4, 1, 0, 1.2, 0.1], [5, 2, 1, 0.5, 0], [1, 2, 3, 4, 5], [0, 1, 0.5, 2, 3]], np.float32
)
BATCH = [(SCORES, LABELS)]


def scores_of(scores):
    """A model whose scores are its inputs."""
    return scores


def diagnose(loss, batches=BATCH, values=(2.0,), **arguments):
    return smoothness.diagnose_smoothness(scores_of, batches, loss, values=values, **arguments)


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
        order = [np.argsort(np.argsort(array)) for array in (smooth, exact)]
        assert row.correlation == pytest.approx(np.corrcoef(*order)[0, 1])


@pytest.mark.parametrize(
    "name", ["approx", *(pytest.param(n, marks=pytest.mark.slow) for n in RELAXATIONS if n != "approx")]
)
def test_a_sharper_ranking_has_a_smaller_gap_and_finally_no_gradient(name):
    relaxation = RELAXATIONS[name]
    others = {key: value for key, value in relaxation.sharp.items() if key != relaxation.temperature}
    loss = losses.get(f"{name}_ndcg", **others)
    soft, sharp = getattr(loss.ranking, relaxation.temperature), relaxation.sharp[relaxation.temperature]
    separate = [(10.0 * np.argsort(np.argsort(SCORES, axis=1), axis=1).astype(np.float32), LABELS)]
    report = diagnose(loss, separate, values=(sharp, soft))
    assert report.hyperparameter == relaxation.temperature
    assert report.rows[0].gap < 1e-4 and report.rows[0].vanishing_share == 1.0
    assert report.rows[0].gap <= report.rows[1].gap


@pytest.mark.slow
def test_batches_and_padding_do_not_change_the_report():
    wide = np.pad(SCORES, [(0, 0), (0, 2)], constant_values=np.nan), np.pad(LABELS, [(0, 0), (0, 2)])
    wide[1][:, 5:] = -1.0
    split = [(SCORES[:2], LABELS[:2]), tuple(array[2:] for array in wide)]
    found, expected = (diagnose(losses.ApproxNDCGLoss(), batches).rows[0] for batches in (split, BATCH))
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(expected), rel=1e-4, abs=1e-6)


@pytest.mark.slow
def test_ragged_lists_have_the_report_of_padded_lists():
    scores, labels = (tf.ragged.boolean_mask(array, LABELS >= 0) for array in (SCORES, LABELS))
    found = diagnose(losses.ApproxNDCGLoss(ragged=True), [(scores, labels)]).rows[0]
    expected = diagnose(losses.ApproxNDCGLoss()).rows[0]
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(expected), rel=1e-4)


def test_a_list_in_its_best_order_does_not_count_as_vanishing():
    best = [(np.where(LABELS > 0, 100.0 * LABELS, 0.0).astype(np.float32), LABELS)]
    row = diagnose(losses.SmoothIPrecisionLoss(topn=3), best).rows[0]
    assert row.vanishing_share == 0.0 and row.exact < 1.0  # Three lists have fewer than three relevant documents.


@pytest.mark.parametrize(
    ("norms", "share"),
    [([1.0, 1.0, 2e-3, 5e-4], 0.25), ([1e-3, 1e-3, 2e-6, 5e-7], 0.25), ([1e-7, 2e-7, 3e-7, 4e-7], 1.0), ([], 0.0)],
)
def test_a_vanishing_gradient_is_small_or_much_smaller_than_the_median(norms, share):
    count = len(norms)
    exact, best = np.full(count + 1, 0.5), np.append(np.full(count, 0.6), 0.5)  # The last list is in its best order.
    summary = smoothness._summary(exact, exact, best, np.append(norms, 0.0))
    assert summary["vanishing_share"] == share


@pytest.mark.parametrize(
    ("gaps", "shares", "recommended", "reason"),
    [
        ([0.3, 0.2, 0.1], [0.0, 0.05, 0.06], 2.0, "the smallest gap among values with a gradient for at least 95% of"),
        ([0.1, 0.2, 0.3], [0.01, 0.0, 0.0], 1.0, "the smallest gap among values with"),
        ([0.1, 0.2, 0.3], [0.9, 0.5, 0.4], 3.0, "the smallest share of vanishing gradients; it exceeds 5%"),
    ],
)
def test_the_recommended_value_and_its_reason(monkeypatch, gaps, shares, recommended, reason):
    rows = {
        float(i): {"gap": gap, "vanishing_share": share}
        for i, (gap, share) in enumerate(zip(gaps, shares, strict=True), 1)
    }

    def scripted(model, loss, ranking):
        return lambda dataset: {"smooth": 0.5, "exact": 0.5, "correlation": 1.0, **rows[ranking.alpha]}

    monkeypatch.setattr(smoothness, "_measurement", scripted)
    report = diagnose(losses.SmoothINDCGLoss(), values=tuple(rows))
    assert report.recommended == recommended and report.reason.startswith(reason)
    lines = str(report).splitlines()
    assert lines[0].split() == ["alpha", "smooth", "exact", "gap", "correlation", "vanishing_share"]
    assert lines[1].split() == ["1", "0.5000", "0.5000", f"{gaps[0]:.4f}", "1.0000", f"{shares[0]:.4f}"]
    assert lines[-1] == f"Recommended: alpha={recommended:g}, {report.reason}."


def test_equal_values_share_their_mean_rank():
    np.testing.assert_array_equal(smoothness._ranks(np.array([3.0, 1.0, 3.0, 2.0])), [3.5, 1.0, 3.5, 2.0])


@dataclasses.dataclass(frozen=True)
class OneSoftmax(rankings.Ranking):
    heat: float = 1.0

    def indicators(self, scores, mask, topn=None):
        return tf.repeat(tf.nn.softmax(tf.where(mask, scores / self.heat, -1e9))[:, tf.newaxis], scores.shape[1], 1)


def test_the_temperature_of_a_custom_ranking_is_its_first_field():
    loss = losses.MeasureLoss(OneSoftmax(), measures.NDCG())
    assert diagnose(loss).hyperparameter == diagnose(loss, hyperparameter="heat").hyperparameter == "heat"
    with pytest.raises(ValueError, match=r"`hyperparameter` must be one of \['heat'\], got 'alpha'"):
        diagnose(loss, hyperparameter="alpha")


@pytest.mark.slow
def test_the_monitor_logs_the_diagnosis_at_the_current_temperature():
    random = np.random.RandomState(0)
    dataset = tf.data.Dataset.from_tensors((random.randn(5, 5, 3).astype(np.float32), LABELS))
    alpha = tf.Variable(1.0, trainable=False)
    loss = losses.ApproxNDCGLoss(alpha=alpha)
    model = models.FeedForwardScorer(hidden=[4])
    model.compile(optimizer="sgd", loss=loss)
    values, expected = [0.5, 5000.0], []
    callbacks = [
        tf.keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: alpha.assign(values[epoch])),
        smoothness.SmoothnessMonitor(dataset, loss),
        tf.keras.callbacks.LambdaCallback(
            on_epoch_end=lambda *_: expected.append(
                smoothness.diagnose_smoothness(model, dataset, loss, values=(float(alpha),)).rows[0]
            )
        ),
    ]
    history = model.fit(dataset, epochs=2, verbose=0, callbacks=callbacks).history
    assert history["smooth_gap"] == pytest.approx([row.gap for row in expected], rel=1e-4)
    assert history["vanishing_share"] == pytest.approx([row.vanishing_share for row in expected])
    assert history["smooth_gap"][0] > 1.5 * history["smooth_gap"][1]


def test_the_model_runs_in_inference_mode():
    model = tf.keras.Sequential([tf.keras.layers.Dropout(0.9)])
    loss = losses.ApproxNDCGLoss()
    found = smoothness.diagnose_smoothness(model, BATCH, loss, values=(2.0,)).rows[0]
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(diagnose(loss).rows[0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": losses.ListNetLoss()}, "`loss` must be a `tfr_smooth.losses.MeasureLoss`, got ListNet"),
        ({"values": ()}, "`values` must contain at least one number, got none."),
        ({"values": (1.0, -2.0)}, "`alpha` must be a finite number > 0, got -2.0."),
        ({"hyperparameter": "alhpa"}, r"`hyperparameter` must be one of \['alpha', .*\], got 'alhpa'."),
        ({"largest_vanishing_share": 1.0}, r"`largest_vanishing_share` must be a number in \(0, 1\), got 1.0."),
        ({"batches": [(SCORES, 0.0 * LABELS)]}, "`dataset` must have a list with a relevant document, got none."),
        ({"batches": [(SCORES * np.nan, LABELS)]}, "`model` must return finite scores for finite labels, got NaN."),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        diagnose(**{"loss": losses.ApproxNDCGLoss(), **arguments})


def test_the_monitor_requires_a_metric_loss():
    with pytest.raises(ValueError, match="`loss` must be a `tfr_smooth.losses.MeasureLoss`, got ListNet"):
        smoothness.SmoothnessMonitor(BATCH, losses.ListNetLoss())
