"""Float64 NumPy references written from the papers: one list at a time, loops as the equations have them."""

from __future__ import annotations

import numpy as np


def smoothi_factors(scores, alpha, delta, ranks):
    """The products of Eq. 7, [K, N]: row r is prod_{l<r} (1 - I_l - delta)."""
    factors = [np.ones(len(scores))]
    for _ in range(ranks - 1):
        row = softmax(alpha * scores * factors[-1])
        factors.append(factors[-1] * (1.0 - row - delta))
    return np.array(factors[:ranks]).reshape(ranks, len(scores))


def softmax(inputs):
    weights = np.exp(inputs - inputs.max())
    return weights / weights.sum()


def smoothi_indicators(scores, alpha=1.0, delta=0.1, topn=None, shift=True):
    """I^r_j of Eq. 7, [K, N]."""
    scores = np.asarray(scores, np.float64)
    scores = scores - scores.min() if shift else scores
    ranks = min(topn or len(scores), len(scores))
    return np.array([softmax(alpha * scores * f) for f in smoothi_factors(scores, alpha, delta, ranks)])


def relevance_and_slopes(scores, relevance, alpha=1.0, delta=0.1, topn=None, shift=True):
    """y_r = sum_j rel_j I^r_j, [K], and d y_r / d S_j with the products held constant (Eq. 9), [K, N]."""
    scores, relevance = np.asarray(scores, np.float64), np.asarray(relevance, np.float64)
    lowest = (scores == scores.min()) * float(shift)
    shifted = scores - scores.min() * float(shift)
    found, slopes = [], []
    for factors in smoothi_factors(shifted, alpha, delta, min(topn or len(scores), len(scores))):
        row = softmax(alpha * shifted * factors)
        found.append(row @ relevance)
        slope = alpha * factors * row * (relevance - found[-1])
        slopes.append(slope - lowest / max(lowest.sum(), 1.0) * slope.sum())  # through the subtracted minimum
    return np.array(found), np.array(slopes)


def binary(labels):
    return (np.asarray(labels) >= 1).astype(np.float64)


def discounts(count):
    return 1.0 / np.log2(np.arange(count) + 2.0)


def dcg(found, gain="exponential"):
    gains = 2.0 ** np.asarray(found) - 1.0 if gain == "exponential" else np.asarray(found, np.float64)
    return gains @ discounts(len(gains))


def ideal_dcg(labels, topn=None, gain="exponential"):
    return dcg(np.sort(np.asarray(labels, np.float64))[::-1][:topn], gain)


def smoothi_ndcg(labels, scores, alpha=1.0, delta=0.1, topn=None):
    """Eq. 12 and its gradient to the scores under Eq. 9."""
    found, slopes = relevance_and_slopes(scores, labels, alpha, delta, topn)
    ideal = ideal_dcg(labels, topn)
    upstream = np.log(2.0) * 2.0**found * discounts(len(found)) / ideal
    return dcg(found) / ideal, upstream @ slopes


def smoothi_precision(labels, scores, alpha=1.0, delta=0.1, topn=10):
    """Eq. 10 and its gradient to the scores under Eq. 9."""
    found, slopes = relevance_and_slopes(scores, binary(labels), alpha, delta, topn)
    return found.sum() / topn, slopes.sum(axis=0) / topn


def smoothi_map(labels, scores, alpha=1.0, delta=0.1):
    """Eq. 11 and its gradient to the scores under Eq. 9."""
    found, slopes = relevance_and_slopes(scores, binary(labels), alpha, delta)
    ranks, relevant = np.arange(1, len(found) + 1), binary(labels).sum()
    value = sum(found[k] * found[: k + 1].sum() / (k + 1) for k in range(len(found))) / relevant
    upstream = np.array([found[: r + 1].sum() / (r + 1) + (found[r:] / ranks[r:]).sum() for r in range(len(found))])
    return value, upstream / relevant @ slopes


def sorted_labels(labels, scores):
    """Labels by falling score; ties by falling position."""
    order = sorted(range(len(scores)), key=lambda j: (-scores[j], -j))
    return np.asarray(labels, np.float64)[order]


def exact_ndcg(labels, scores, topn=None, gain="exponential"):
    return dcg(sorted_labels(labels, scores)[:topn], gain) / ideal_dcg(labels, topn, gain)


def exact_precision(labels, scores, topn=10):
    return binary(sorted_labels(labels, scores))[:topn].sum() / topn


def exact_map(labels, scores):
    found = binary(sorted_labels(labels, scores))
    return (found * found.cumsum() / np.arange(1, len(found) + 1)).sum() / found.sum()


def cascade(chances):
    """The mean of 1 / rank of where a reader stops, who stops at rank r with the chance `chances[r - 1]`."""
    value, reached = 0.0, 1.0
    for rank, chance in enumerate(chances, start=1):
        value += reached * chance / rank
        reached *= 1.0 - chance
    return value


def exact_rr(labels, scores, topn=None):
    return cascade(binary(sorted_labels(labels, scores))[:topn])


def satisfaction(labels, max_grade=4.0):
    return (2.0 ** np.minimum(labels, max_grade) - 1.0) / 2.0**max_grade


def exact_err(labels, scores, topn=None, max_grade=4.0):
    return cascade(satisfaction(sorted_labels(labels, scores)[:topn], max_grade))


def list_ap(labels, scores, num_bins=20, temperature=1.0):
    """ListAP with the triangular kernels of the paper, over all bins (arXiv:1906.07589, Section 3.2)."""
    x = np.tanh((np.asarray(scores, np.float64) - np.mean(scores)) / temperature)
    width = 2.0 / (num_bins - 1)
    centers = 1.0 - width * np.arange(num_bins)
    kernel = np.maximum(1.0 - np.abs(x[:, None] - centers) / width, 0.0)
    found, documents = binary(labels) @ kernel, kernel.sum(axis=0)
    seen = documents.cumsum()
    precisions = np.divide(found.cumsum(), seen, out=np.zeros(num_bins), where=seen > 0)
    return (precisions * found).sum() / binary(labels).sum()


def central_differences(function, scores, step=1e-6):
    """The gradient of a scalar function at `scores` by central differences in float64."""
    gradient = np.zeros(len(scores))
    for j in range(len(scores)):
        up, down = np.array(scores, np.float64), np.array(scores, np.float64)
        up[j] += step
        down[j] -= step
        gradient[j] = (function(up) - function(down)) / (2 * step)
    return gradient
