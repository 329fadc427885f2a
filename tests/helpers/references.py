"""Float64 NumPy references written from the papers, for one list at a time, with loops as in the equations."""

from __future__ import annotations

import math

import numpy as np

from tfr_smooth import losses


def smoothi_factors(scores, alpha, delta, ranks):
    """Returns the products of Eq. 7, [K, N]: row r is prod_{l<r} (1 - I_l - delta)."""
    factors = [np.ones(len(scores))]
    for _ in range(ranks - 1):
        row = softmax(alpha * scores * factors[-1])
        factors.append(factors[-1] * (1.0 - row - delta))
    return np.array(factors[:ranks]).reshape(ranks, len(scores))


def softmax(inputs):
    weights = np.exp(inputs - inputs.max())
    return weights / weights.sum()


def smoothi_indicators(scores, alpha=1.0, delta=0.1, topn=None, shift=True):
    """Returns I^r_j of Eq. 7, [K, N]."""
    scores = np.asarray(scores, np.float64)
    scores = scores - scores.min() if shift else scores
    ranks = min(topn or len(scores), len(scores))
    return np.array([softmax(alpha * scores * f) for f in smoothi_factors(scores, alpha, delta, ranks)])


def relevance_and_slopes(scores, relevance, alpha=1.0, delta=0.1, topn=None, shift=True):
    """Returns y_r = sum_j rel_j I^r_j, [K], and d y_r / d S_j with the products held constant (Eq. 9), [K, N]."""
    scores, relevance = np.asarray(scores, np.float64), np.asarray(relevance, np.float64)
    lowest = (scores == scores.min()) * float(shift)
    shifted = scores - scores.min() * float(shift)
    found, slopes = [], []
    for factors in smoothi_factors(shifted, alpha, delta, min(topn or len(scores), len(scores))):
        row = softmax(alpha * shifted * factors)
        found.append(row @ relevance)
        slope = alpha * factors * row * (relevance - found[-1])
        slopes.append(slope - lowest / max(lowest.sum(), 1.0) * slope.sum())  # gradient through the subtracted minimum
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
    """Returns Eq. 12 and its gradient with respect to the scores under Eq. 9."""
    found, slopes = relevance_and_slopes(scores, labels, alpha, delta, topn)
    ideal = ideal_dcg(labels, topn)
    upstream = np.log(2.0) * 2.0**found * discounts(len(found)) / ideal
    return dcg(found) / ideal, upstream @ slopes


def sorted_order(scores):
    """Returns the documents by decreasing score; ties by decreasing position."""
    return np.array(sorted(range(len(scores)), key=lambda j: (-scores[j], -j)))


def sorted_labels(labels, scores):
    """Returns the labels in this order."""
    return np.asarray(labels, np.float64)[sorted_order(scores)]


def exact_ndcg(labels, scores, topn=None, gain="exponential"):
    return dcg(sorted_labels(labels, scores)[:topn], gain) / ideal_dcg(labels, topn, gain)


def exact_precision(labels, scores, topn=10):
    return binary(sorted_labels(labels, scores))[:topn].sum() / topn


def cascade(chances):
    """Returns the expected 1 / rank at which a user stops who stops at rank r with probability `chances[r - 1]`."""
    value, reached = 0.0, 1.0
    for rank, chance in enumerate(chances, start=1):
        value += reached * chance / rank
        reached *= 1.0 - chance
    return value


def exact_rr(labels, scores, topn=None):
    return cascade(binary(sorted_labels(labels, scores))[:topn])


def satisfaction(labels, max_grade=4.0):
    return (2.0 ** np.minimum(labels, max_grade) - 1.0) / 2.0**max_grade


def exact_dcg(labels, scores, topn=None, gain_fn=None, rank_discount_fn=None):
    """Jarvelin and Kekalainen 2002, with the gain 2^y - 1 unless there is another."""
    found = sorted_labels(labels, scores)[:topn]
    gains = gain_of(found, "exponential") if gain_fn is None else np.asarray(gain_fn(found))
    return gains @ rank_discounts(len(found), rank_discount_fn)


def rank_discounts(count, rank_discount_fn):
    ranks = np.arange(1.0, count + 1.0)
    return discounts(count) if rank_discount_fn is None else np.asarray(rank_discount_fn(np.float32(ranks)))


def average_relevance_position(labels, scores):
    found = sorted_labels(labels, scores)
    return found @ np.arange(1.0, len(found) + 1.0) / found.sum()


def pairs_of(labels):
    """Returns the pairs of documents of which the first has the higher label."""
    return [(i, j) for i in range(len(labels)) for j in range(len(labels)) if labels[i] > labels[j]]


def ordered_pair_accuracy(labels, scores):
    right = [scores[i] > scores[j] for i, j in pairs_of(labels)]
    return np.mean(right) if right else 0.0


def alpha_dcg(labels, scores, topn=None, alpha=0.5, rank_discount_fn=None, seed=None):
    """Clarke et al. 2008, for labels [document] or [document, subtopic] without padding."""
    found = sorted_labels(labels, scores)[:topn].reshape(min(len(labels), topn or len(labels)), -1)
    gains, seen = [], np.zeros(found.shape[1])
    for row in found:
        gains.append((row * (1.0 - alpha) ** seen).sum())
        seen += row
    return np.array(gains) @ rank_discounts(len(found), rank_discount_fn)


def precision_ia(labels, scores, topn=10):
    """Agrawal et al. 2009 with equal weights: the mean over the subtopics with a relevant document of P@K."""
    of_subtopics = [column for column in np.asarray(labels).reshape(len(labels), -1).T if (column >= 1).any()]
    return np.mean([exact_precision(column, scores, topn or len(labels)) for column in of_subtopics])


def average_ranks(values):
    """Returns the ranks by descending value, from 1 on; ties share the mean of their ranks."""
    values = np.asarray(values, np.float64)
    return np.array([1.0 + (values > v).sum() + 0.5 * ((values == v).sum() - 1.0) for v in values])


def spearman(labels, scores):
    """Spearman 1904: Pearson's correlation of average ranks; 0 if there is none."""
    x, y = average_ranks(labels), average_ranks(scores)
    norm = x.std() * y.std()
    return np.mean((x - x.mean()) * (y - y.mean())) / norm if norm else 0.0


def kendall_tau(labels, scores):
    """Kendall 1945, tau-b, over all pairs; 0 if there is none."""
    pairs = [(i, j) for i in range(len(labels)) for j in range(i)]
    products = [np.sign(labels[i] - labels[j]) * np.sign(scores[i] - scores[j]) for i, j in pairs]
    norm = math.sqrt(sum(labels[i] != labels[j] for i, j in pairs) * sum(scores[i] != scores[j] for i, j in pairs))
    return sum(products) / norm if norm else 0.0


# Measures that are undefined for equal labels, and negative for reversed orders.
CORRELATIONS = ("spearman", "kendall_tau")
EXACT_ONLY = {
    "hits": lambda labels, scores, topn=10: float(exact_rr(labels, scores, topn) > 0.0),
    "dcg": exact_dcg,
    "arp": average_relevance_position,
    "ordered_pair_accuracy": ordered_pair_accuracy,
    "kendall_tau": kendall_tau,
    "alpha_dcg": alpha_dcg,
    "precision_ia": precision_ia,
}


def weight_of_list(metric, labels):
    """Returns the weight of a list without padding in the mean of an exact metric."""
    of_metric = {"arp": np.sum, "ordered_pair_accuracy": lambda labels: len(pairs_of(labels))}
    return of_metric.get(metric, lambda labels: 1.0)(labels)


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
    """Returns the gradient of a scalar function at `scores` by central differences in float64."""
    gradient = np.zeros(len(scores))
    for j in range(len(scores)):
        up, down = np.array(scores, np.float64), np.array(scores, np.float64)
        up[j] += step
        down[j] -= step
        gradient[j] = (function(up) - function(down)) / (2 * step)
    return gradient


# ---- Rankings: indicators [rank, document] or positions [document].


def approx_positions(scores, alpha=10.0):
    """Qin, Liu, Li 2010: 1 + sum_{i != j} 1 / (1 + exp(alpha (s_j - s_i)))."""
    n = range(len(scores))
    return np.array([1.0 + sum(sigmoid(alpha * (scores[i] - scores[j])) for i in n if i != j) for j in n])


def sigmoid(x):
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(x, np.float64)))


def softrank_indicators(scores, sigma=1.0, distribution="binomial", sinkhorn_steps=0):
    """Taylor et al. 2008: Eq. 11 and 12 or section 3.6, of each document, then the scaling of section 3.2."""
    n = len(scores)
    behind = (scores[:, None] - scores) / (2.0 * sigma)
    wins, losses = (0.5 * np.vectorize(math.erfc)(sign * behind) * (1.0 - np.eye(n)) for sign in (1, -1))  # of i over j
    means, variances = wins.sum(axis=1), (wins * losses).sum(axis=1)
    to_end = np.minimum(means, n - 1 - means)
    first_other = np.sort(np.append(to_end, np.full(17, np.inf)))[16]
    rows = []
    for j in range(n):
        if distribution == "normal" and to_end[j] > first_other - 1e-6:
            edges = (np.arange(n - 1) + 0.5 - means[j]) / math.sqrt(max(variances[j], 1e-300))
            below = [0.5 * math.erfc(-edge / math.sqrt(2.0)) for edge in edges]
            rows.append(np.diff([0.0, *below, 1.0]))
            continue
        chances = np.eye(1, n)[0]
        for win, loss in zip(np.delete(wins[j], j), np.delete(losses[j], j), strict=True):
            chances = np.append(0.0, chances[:-1]) * win + chances * loss
        rows.append(chances)
    matrix = np.array(rows)
    for _ in range(sinkhorn_steps):
        matrix = matrix / matrix.sum(axis=0)
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
    return matrix.T


def neuralsort_indicators(scores, temperature=1.0, sinkhorn_steps=0):
    """Eq. 5 of arXiv:1903.08850; scaled columns, then rows, as in Section 3 of arXiv:2102.07831, in log space."""
    n = len(scores)
    sums = np.abs(scores[:, None] - scores).sum(axis=1)
    logits = np.array([((n + 1 - 2 * r) * scores - sums) / temperature for r in range(1, n + 1)])
    for axis in (1, *(0, 1) * sinkhorn_steps):
        logits = logits - np.logaddexp.reduce(logits, axis=axis, keepdims=True)
    return np.exp(logits)


def softsort_indicators(scores, temperature=1.0, power=1.0):
    """Eq. 3 of arXiv:2006.16038."""
    return np.array([softmax(-(np.abs(s - scores) ** power) / temperature) for s in np.sort(scores)[::-1]])


def fastsort_positions(scores, regularization_strength=1.0, regularization="l2"):
    """Proposition 3 of arXiv:2002.08871 by pooling adjacent violators, one document at a time."""
    z = -np.asarray(scores, np.float64) / regularization_strength
    order = np.argsort(-z, kind="stable")
    falling, targets = z[order], np.arange(len(z), 0, -1.0)

    def value(block):
        zs, ws = falling[slice(*block)], targets[slice(*block)]
        return zs.mean() - ws.mean() if regularization == "l2" else np.logaddexp.reduce(zs) - np.log(ws.sum())

    blocks = []
    for i in range(len(z)):
        blocks.append((i, i + 1))
        while len(blocks) > 1 and value(blocks[-2]) <= value(blocks[-1]):
            blocks[-2:] = [(blocks[-2][0], blocks[-1][1])]
    found = np.empty(len(z))
    found[order] = falling - np.concatenate([np.full(end - start, value((start, end))) for start, end in blocks])
    return found if regularization == "l2" else np.exp(found)


def sinkhorn_positions(scores, epsilon=0.1, steps=20000):
    """The positions of arXiv:1905.11885 by the algorithm of the paper, in log space."""
    n = len(scores)
    standardized = (scores - np.mean(scores)) / max(np.std(scores), 1e-6)
    squashed = sigmoid(math.pi / math.sqrt(3.0) * standardized)
    exponents = -((squashed[:, None] - np.linspace(1.0, 0.0, n)) ** 2) / epsilon
    f, g = np.zeros(n), np.full(n, np.inf)
    for _ in range(steps):
        before, g = g, -np.logaddexp.reduce(exponents + f[:, None], axis=0)
        f = -np.logaddexp.reduce(exponents + g, axis=1)
        if np.abs(g - before).max() < 1e-14:
            break
    return np.exp(exponents + f[:, None] + g) @ np.arange(1.0, n + 1.0)


def laplace(x):
    """The distribution function of the Laplace distribution."""
    return np.where(x <= 0.0, 0.5 * np.exp(np.minimum(x, 0.0)), 1.0 - 0.5 * np.exp(-np.maximum(x, 0.0)))


def lapsum_positions(scores, alpha=0.1):
    """n minus the ranks of arXiv:2503.06242, which ascend from 0: sums of Laplace distribution functions."""
    n = range(len(scores))
    return np.array([1.0 + sum(laplace((scores[i] - scores[j]) / alpha) for i in n if i != j) for j in n])


def swaps(wires, network):
    """Yields the pairs of each layer, of which the first wire takes the higher value (bitonic: Batcher 1968)."""
    if network == "odd_even":
        for layer in range(wires):
            yield [(i, i + 1) for i in range(layer % 2, wires - 1, 2)]
        return
    size = 2
    while size <= wires:
        distance = size // 2
        while distance:
            upper = [i for i in range(wires) if not i & distance]
            yield [(i, i + distance) if not i & size else (i + distance, i) for i in upper]
            distance //= 2
        size *= 2


def sorting_network_indicators(scores, steepness=3.0, sorting_network="bitonic", distribution="cauchy"):
    """The relaxed permutation of arXiv:2105.04019, Eq. 2 and 3, from the documents in descending order.

    A bitonic network has a power of two of wires, those without a document at minus infinity.
    """
    n, order = len(scores), np.argsort(-scores, kind="stable")
    wires = 2 ** math.ceil(math.log2(n)) if sorting_network == "bitonic" else n
    x, matrix = np.full(wires, -np.inf), np.zeros((wires, n))
    x[:n] = scores[order]
    for wire, document in enumerate(order):
        tied = scores == scores[document]
        matrix[wire, tied] = 1.0 / tied.sum()
    keeps = {"cauchy": lambda d: math.atan(d) / math.pi + 0.5, "logistic": sigmoid}[distribution]
    for pairs in swaps(wires, sorting_network):
        for a, b in pairs:
            if np.isinf(x[a]) or np.isinf(x[b]):  # a hard swap
                hard = [b, a] if x[b] > x[a] else [a, b]
                x[[a, b]], matrix[[a, b]] = x[hard], matrix[hard]
                continue
            share = keeps(steepness * (x[a] - x[b]))
            swap = np.array([[share, 1.0 - share], [1.0 - share, share]])
            x[[a, b]], matrix[[a, b]] = swap @ x[[a, b]], swap @ matrix[[a, b]]
    return matrix[:n]


# ---- Metrics computed from a ranking.


def discount_at(discount, ranks, count):
    """Returns the discount at ranks that start at 0 and may be fractional."""
    if isinstance(discount, str) and discount == "log2":
        return 1.0 / np.log2(2.0 + ranks)
    if isinstance(discount, str):
        return 1.0 - np.minimum(ranks / count, 1.0)
    table = np.append(discount, [0.0])
    return np.interp(ranks, np.arange(len(table)), table)


def gain_of(relevance, gain):
    return 2.0**relevance - 1.0 if gain == "exponential" else relevance


def relevance_for(metric, labels, max_grade=4.0, **_):
    """Returns the relevance that the metric computes from the labels."""
    labels = np.asarray(labels, np.float64)
    return {"ndcg": lambda: labels, "err": lambda: satisfaction(labels, max_grade)}.get(
        metric, lambda: binary(labels)
    )()


def metric_of_relevance(metric, found, labels, topn=None, gain="exponential", discount="log2", **_):
    """Returns a metric of the relevance at each rank (Eq. 10 to 12 of arXiv:2105.00942, and the cascades)."""
    count, cut = len(found), found[:topn]
    if metric == "ndcg":
        at_ranks = discount_at(discount, np.arange(count), count)[:topn]
        ideal = np.sort(np.asarray(labels, np.float64))[::-1][:topn]
        return gain_of(cut, gain) @ at_ranks / (gain_of(ideal, gain) @ at_ranks)
    if metric == "precision":
        return cut.sum() / (topn or count)
    if metric == "recall":
        return cut.sum() / binary(labels).sum()
    if metric == "map":
        return sum(cut[k] * cut[: k + 1].sum() / (k + 1) for k in range(len(cut))) / binary(labels).sum()
    return cascade(np.minimum(cut, 1.0))


def metric_of_positions(metric, positions, labels, beta=10.0, topn=None, gain="exponential", discount="log2", **others):
    """Returns a metric of the positions of the documents, compared with sigmoids (Qin, Liu, Li 2010)."""
    if metric == "spearman":
        ranks, count = average_ranks(labels), len(labels)
        norm = count * ranks.std() * math.sqrt((count**2 - 1) / 12.0)
        return np.sum((positions - (count + 1) / 2) * (ranks - ranks.mean())) / norm
    relevance, n = relevance_for(metric, labels, **others), range(len(labels))
    within = np.ones(len(labels)) if topn is None else sigmoid(beta * (topn + 0.5 - positions))
    if metric == "ndcg":
        ranks = np.arange(len(labels))
        ideal = gain_of(np.sort(relevance)[::-1], gain) * discount_at(discount, ranks, len(labels))
        by_document = gain_of(relevance, gain) * discount_at(discount, positions - 1.0, len(labels)) * within
        return by_document.sum() / ideal[:topn].sum()
    if metric == "precision":
        return relevance @ within / (topn or len(labels))
    if metric == "recall":
        return relevance @ within / relevance.sum()
    before = [[sigmoid(beta * (positions[j] - 0.5 - positions[i])) if i != j else 0.0 for i in n] for j in n]
    if metric == "map":
        terms = [relevance[j] / positions[j] * within[j] * (1.0 + relevance @ before[j]) for j in n]
        return sum(terms) / relevance.sum()
    none_before = [np.prod([1.0 - relevance[i] * before[j][i] for i in n]) for j in n]
    return sum(relevance[j] / positions[j] * within[j] * none_before[j] for j in n)


def expected_ndcg(indicators, labels, topn=None, gain="exponential", discount="log2", **_):
    """SoftNDCG (Eq. 14 and 15 of Taylor et al. 2008): the gain of each document times its expected discount."""
    at_ranks = discount_at(discount, np.arange(len(labels)), len(labels))[:topn]
    ideal = np.sort(np.asarray(labels, np.float64))[::-1][:topn]
    expected = at_ranks @ indicators[:topn]
    return gain_of(np.asarray(labels, np.float64), gain) @ expected / (gain_of(ideal, gain) @ at_ranks)


# Name -> function that computes indicators or positions, and the names of its arguments.
INDICATORS = {
    "smoothi": (smoothi_indicators, ("alpha", "delta", "shift")),
    "soft": (softrank_indicators, ("sigma", "distribution", "sinkhorn_steps")),
    "neuralsort": (neuralsort_indicators, ("temperature", "sinkhorn_steps")),
    "softsort": (softsort_indicators, ("temperature", "power")),
    "sortingnetwork": (sorting_network_indicators, ("steepness", "sorting_network", "distribution")),
}
POSITIONS = {
    "approx": (approx_positions, ("alpha",)),
    "fastsort": (fastsort_positions, ("regularization_strength", "regularization")),
    "sinkhorn": (sinkhorn_positions, ("epsilon",)),
    "lapsum": (lapsum_positions, ("alpha",)),
}
RANKINGS = {**INDICATORS, **POSITIONS}


def ranking_of(ranking, scores, **arguments):
    """Returns the indicators or positions of one list."""
    function, names = RANKINGS[ranking]
    return function(np.asarray(scores, np.float64), **{k: arguments[k] for k in names if k in arguments})


def smooth_metric(ranking, metric, labels, scores, **arguments):
    """Returns a measure of a smooth ranking, for one list."""
    found = ranking_of(ranking, scores, **arguments)
    if ranking in POSITIONS:
        return metric_of_positions(metric, found, labels, **arguments)
    if (ranking, metric) == ("soft", "ndcg"):
        return expected_ndcg(found, labels, **arguments)
    return metric_of_relevance(metric, found @ relevance_for(metric, labels, **arguments), labels, **arguments)


def smoothi_gradient(metric, labels, scores, alpha=1.0, delta=0.1, shift=True, **arguments):
    """Returns the gradient of a metric of SmoothI under Eq. 9, with constant products."""
    relevance = relevance_for(metric, labels, **arguments)
    found, slopes = relevance_and_slopes(scores, relevance, alpha, delta, shift=shift)
    return central_differences(lambda y: metric_of_relevance(metric, y, labels, **arguments), found) @ slopes


def exact_metric(metric, labels, scores, **arguments):
    """Returns a measure of the sorted list."""
    if metric in EXACT_ONLY:
        return EXACT_ONLY[metric](np.asarray(labels, np.float64), np.asarray(scores), **arguments)
    if metric == "spearman":
        return spearman(labels, scores)
    relevance = relevance_for(metric, labels, **arguments)
    return metric_of_relevance(metric, sorted_labels(relevance, scores), labels, **arguments)


# ---- Baselines, for lists without tied scores.


def list_net(labels, scores, temperature=1.0):
    """Cao et al. 2007, top-one probabilities: the cross entropy of two softmaxes."""
    scores = np.asarray(scores, np.float64) / temperature
    return -(softmax(np.asarray(labels, np.float64)) * (scores - np.logaddexp.reduce(scores))).sum()


def softmax_loss(labels, scores, temperature=1.0, lambda_weight=None):
    """Bruch et al. 2019, Eq. 1, without the division of the labels."""
    if lambda_weight is not None:
        labels = document_weights(lambda_weight, labels, scores)
    logits = np.asarray(scores, np.float64) / temperature
    return -(np.asarray(labels) * (logits - np.logaddexp.reduce(logits))).sum()


def softmax_at_k(labels, scores, topn=20, weight_temperature=11.25, temperature=1.0, of=None):
    """Yang et al. 2025 ("Breaking the Top-K Barrier"), with the exact quantile of the scores, or of the scores `of`."""
    scores = np.asarray(scores, np.float64)
    threshold = sorted(scores if of is None else of, reverse=True)[min(topn, len(scores)) - 1]
    weights = 1.0 / (1.0 + np.exp(-(scores - threshold) / weight_temperature))
    return softmax_loss(labels * weights, scores, temperature)


def psl(labels, scores, activation="tanh", score_range=10.0, temperature=1.0):
    """Yang et al. 2024, Eq. 4.1, of scores divided by `score_range` at its temperature, the quotient of both."""
    scores = np.asarray(scores, np.float64) / score_range
    function = {"tanh": np.tanh, "atan": np.arctan, "relu": np.asarray}[activation]
    powers = np.maximum(function(scores - scores[:, None]) + 1.0, 0.0) ** (score_range / temperature)
    return (np.asarray(labels) * np.log(powers.sum(axis=1))).sum()


def bsl(labels, scores, positive_temperature=1.0, temperature=1.0):
    """Wu et al. 2024: tau log E exp(s / tau) of the other documents minus that of the relevant ones."""
    labels, scores = np.asarray(labels, np.float64), np.asarray(scores, np.float64)

    def smooth_maximum(weights, tau):
        return tau * np.log(np.average(np.exp((scores - scores.max()) / tau), weights=weights))

    return smooth_maximum(labels == 0.0, temperature) - smooth_maximum(labels, positive_temperature)


def poly1_softmax(labels, scores, epsilon=1.0, temperature=1.0):
    """Leng et al. 2022: the softmax loss and epsilon times the probability of other documents than the relevant."""
    chances = softmax(np.asarray(scores, np.float64) / temperature)
    return softmax_loss(labels, scores, temperature) + epsilon * (1.0 - np.average(chances, weights=labels))


def xe_ndcg(labels, scores, temperature=1.0, seed=None):
    """Bruch 2021: the cross entropy of a softmax and the gains 2^y - gamma, divided by their sum."""
    gains = 2.0 ** np.asarray(labels) - (0.5 + 0.5 * repeatable_noise(labels, 1)[0])
    return softmax_loss(gains / gains.sum(), scores, temperature)


def calibrated_softmax(labels, scores, virtual_label=0.0, **arguments):
    """Yan et al. 2022, Eq. 8: a softmax loss with a virtual document."""
    return softmax_loss([*labels, virtual_label], [*scores, 0.0], **arguments)


def unique_softmax(labels, scores, temperature=1.0):
    """Zhu and Klabjan 2020: each document among itself and the documents with lower labels."""
    logits = np.asarray(scores, np.float64) / temperature
    totals = [np.logaddexp.reduce([s, *logits[labels < y]]) for y, s in zip(labels, logits, strict=True)]
    return ((2.0**labels - 1.0) * (totals - logits)).sum()


def sigmoid_cross_entropy(labels, scores):
    """The mean of -y log(p) - (1 - y) log(1 - p), where p are the sigmoids of the scores."""
    probabilities = 1.0 / (1.0 + np.exp(-np.asarray(scores, np.float64)))
    return np.mean(-labels * np.log(probabilities) - (1.0 - labels) * np.log(1.0 - probabilities))


def regression_compatible(labels, scores, list_weight=0.5):
    """Bai et al. 2023: SigmoidCE and ListCE, the cross entropy of the labels and the sigmoids, both divided by sums."""
    odds = 1.0 / (1.0 + np.exp(-np.asarray(scores, np.float64)))
    total = np.sum(labels)
    listwise = -(labels / total * np.log(odds / odds.sum())).sum() if total else 0.0
    return (1.0 - list_weight) * sigmoid_cross_entropy(labels, scores) + list_weight * listwise


def list_mle(labels, scores, position_aware=False, lambda_weight=None, temperature=1.0):
    """Xia et al. 2008, Lan et al. 2014; documents with equal labels share their mean score and exponential."""
    labels, scores, n = np.asarray(labels), np.asarray(scores, np.float64) / temperature, len(labels)
    order = np.argsort(-labels, kind="stable")
    tied = [scores[labels == labels[j]] for j in order]
    means, logs = [t.mean() for t in tied], [np.logaddexp.reduce(t) - np.log(len(t)) for t in tied]
    weights = [(2 ** (n - i) - 1) / max(2 ** (n - 1) - 1, 1) if position_aware else 1.0 for i in range(1, n + 1)]
    if lambda_weight is not None:
        weights = [weight * float(lambda_weight.rank_discount_fn(i)) for i, weight in enumerate(weights, 1)]
    return sum(weights[i] * (np.logaddexp.reduce(logs[i:]) - means[i]) for i in range(n))


def rank_net(labels, scores, sigma=1.0):
    """Burges et al. 2005, Eq. 3, over the pairs with different labels."""
    n = range(len(labels))
    terms = [np.logaddexp(0.0, sigma * (scores[j] - scores[i])) for i in n for j in n if labels[i] > labels[j]]
    return np.mean(terms or [0.0])


def weighted_pairs(function, labels, scores, lambda_weight=None, temperature=1.0):
    """The sum of the function of (s_i - s_j) / temperature over the pairs with y_i > y_j, divided by N."""
    scores, n = np.asarray(scores, np.float64) / temperature, range(len(labels))
    weights = np.ones([len(n), len(n)]) if lambda_weight is None else pair_weights(lambda_weight, labels, scores)
    terms = [weights[i, j] * function(scores[i] - scores[j]) for i in n for j in n if labels[i] > labels[j]]
    return sum(terms) / len(n)


def pairwise_logistic(labels, scores, **arguments):
    return weighted_pairs(lambda gap: np.logaddexp(0.0, -gap), labels, scores, **arguments)


def pairwise_hinge(labels, scores, **arguments):
    return weighted_pairs(lambda gap: max(0.0, 1.0 - gap), labels, scores, **arguments)


def pairwise_qr(labels, scores, quantile=0.5, squared=False, lambda_weight=None, temperature=1.0):
    """Rax's definition, divided by N."""
    scores, n, power = np.asarray(scores, np.float64) / temperature, range(len(labels)), 2 if squared else 1
    weights = np.ones([len(n), len(n)]) if lambda_weight is None else pair_weights(lambda_weight, labels, scores)
    gaps = np.subtract.outer(labels, labels) - np.subtract.outer(scores, scores)
    terms = np.where(gaps > 0.0, quantile, 1.0 - quantile) * np.abs(gaps) ** power
    return sum(weights[i, j] * terms[i, j] for i in n for j in n if labels[i] > labels[j]) / len(n)


def pairwise_soft_zero_one(labels, scores, **arguments):
    return weighted_pairs(lambda gap: 1.0 - sigmoid(gap), labels, scores, **arguments)


def pairwise_mse(labels, scores, lambda_weight=None, temperature=1.0):
    scores, n = np.asarray(scores, np.float64) / temperature, range(len(labels))
    weights = np.ones([len(n), len(n)]) if lambda_weight is None else pair_weights(lambda_weight, labels, scores)
    gaps = np.subtract.outer(scores, scores) - np.subtract.outer(labels, labels)
    return sum(weights[i, j] * gaps[i, j] ** 2 for i in n for j in n if i != j) / len(n)


def pair_weights(weight, labels, scores):
    """The weights of TF-Ranking's lambda weights for distinct scores, with N without padding."""
    kind, n, labels = type(weight).__name__, len(labels), np.asarray(labels, np.float64)
    ranks = np.argsort(np.argsort(-np.asarray(scores))) + 1.0
    if kind == "LabelDiffLambdaWeight":
        return abs(np.subtract.outer(labels, labels))
    cut = weight.topn or n
    if kind == "PrecisionLambdaWeight":
        within = ranks <= cut
        return (binary(labels)[:, None] != binary(labels)) * (within[:, None] != within) * 1.0
    is_ndcg = "NDCG" in kind or "Yeti" in kind
    gain = weight.gain_fn or ((lambda y: 2.0**y - 1.0) if is_ndcg else (lambda y: y))
    discount = weight.rank_discount_fn or ((lambda r: 1.0 / np.log2(1.0 + r)) if is_ndcg else (lambda r: 1.0 / r))
    gains = gain(labels)
    if weight.normalized:
        gains = gains / sum(gain(y) * discount(r) for r, y in enumerate(sorted(labels)[::-1][:cut], 1))

    def of_ranks(i, j):
        apart, within = abs(i - j), min(i, j) <= cut
        if apart == 0.0:
            return 0.0
        u = discount(apart) - discount(apart + 1.0)
        if hasattr(weight, "smooth_fraction"):
            v = abs(discount(i) * (i <= cut) - discount(j) * (j <= cut))
            return (1.0 - weight.smooth_fraction) * u * within + weight.smooth_fraction * v
        u *= 1.0 / (1.0 - discount(max(i, j))) if max(i, j) > cut else 1.0
        return u * (apart == 1.0) if "Yeti" in kind else u

    return n * abs(np.subtract.outer(gains, gains)) * np.array([[of_ranks(i, j) for j in ranks] for i in ranks])


def document_weights(weight, labels, scores):
    """g_i D(r_i) of an `NDCGLambdaWeight` for distinct scores."""
    gains, ranks = 2.0 ** np.asarray(labels) - 1.0, np.argsort(np.argsort(-np.asarray(scores))) + 1.0
    return gains / ideal_dcg(labels, weight.topn) / np.log2(1.0 + ranks)


def repeatable_noise(labels, sample_size):
    """The noise of the tests, [samples, list]: equal for equal labels."""
    return np.round(np.sin(5.0 * np.asarray(labels) + np.arange(sample_size)[:, None]) * 256.0) / 256.0


def over_samples(function, labels, scores, sample_size=8, gumbel_temperature=1.0, seed=None, **arguments):
    samples = (np.asarray(scores) + repeatable_noise(labels, sample_size)) / gumbel_temperature
    return np.mean([function(labels, sample, **arguments) for sample in samples])


def gumbel_approx_ndcg(labels, scores, **arguments):
    return over_samples(
        lambda *args, **kw: 1.0 - smooth_metric("approx", "ndcg", *args, **kw), labels, scores, **arguments
    )


def pl_rank_ndcg(labels, scores, sample_size=32, temperature=1.0, seed=None, **arguments):
    samples = np.asarray(scores) / temperature + repeatable_noise(labels, sample_size)
    return np.mean([1.0 - exact_metric("ndcg", labels, sample, **arguments) for sample in samples])


def pl_rank_ndcg_gradient(labels, scores, sample_size=32, temperature=1.0, seed=None, topn=None, **arguments):
    """The negative PL-Rank-2 of each sample."""
    scores, gain = np.asarray(scores) / temperature, arguments.get("gain", "exponential")
    weights = discount_at(arguments.get("discount", "log2"), np.arange(len(labels)), len(labels))[:topn]
    gains = gain_of(np.asarray(labels, np.float64), gain)
    gains = gains / (np.sort(gains)[::-1][:topn] @ weights)
    orders = (sorted_order(sample) for sample in scores + repeatable_noise(labels, sample_size))
    return -np.mean([pl_rank_2(order, scores, weights, gains) for order in orders], axis=0) / temperature


def pl_rank_2(order, scores, weights, gains):
    """Oosterhuis 2021, PL-Rank-2 of one ranking: what follows a document, and what is expected where it is placed."""
    rewards = np.append(weights * gains[order[: len(weights)]], np.zeros(len(order) - len(weights)))
    weights = np.append(weights, np.zeros(len(order) - len(weights)))
    slopes = np.zeros(len(order))
    for rank, document in enumerate(order):
        slopes[document] = rewards[rank + 1 :].sum()
        for k in range(rank + 1):
            chance = np.exp(scores[document] - np.logaddexp.reduce(scores[order[k:]]))
            slopes[document] += chance * (weights[k] * gains[document] - rewards[k:].sum())
    return slopes


def yeti_logistic(labels, scores, lambda_weight=None, **arguments):
    weight = lambda_weight or losses.YetiDCGLambdaWeight()
    return over_samples(pairwise_logistic, labels, scores, lambda_weight=weight, **arguments)


def coupled_rankdistil(labels, scores, sample_size=8, topk=None, temperature=1.0, seed=None):
    """Reddi et al. 2021: the likelihood of the first documents of sampled orders."""
    scores, found = np.asarray(scores, np.float64) / temperature, []
    for teacher in np.asarray(labels) + repeatable_noise(labels, sample_size):
        ordered = scores[np.argsort(teacher, kind="stable")[::-1]]
        found.append(sum(np.logaddexp.reduce(ordered[i:]) - ordered[i] for i in range(len(labels))[:topk]))
    return np.mean(found)


def lambda_weights(labels, scores, metric="ndcg_loss2++", mu=10.0, topn=None, **_):
    """Returns w_ij of Wang et al. 2018, with the cutoff of Jagerman et al. 2022, [N, N]."""
    count, cut = len(labels), topn or len(labels)
    ranks = np.argsort(np.argsort(-np.asarray(scores))) + 1
    relevant, gains = binary(labels), (2.0 ** np.asarray(labels) - 1.0) / ideal_dcg(labels, topn)

    def inverse(rank):
        return 1.0 / math.log2(1.0 + rank)

    def lifted(rank):
        return 1.0 / (1.0 - inverse(rank)) if rank > cut else 1.0

    def weight(i, j):
        first, second = ranks[i], ranks[j]
        if metric == "precision":
            return float(relevant[i] > relevant[j] and (first <= cut) != (second <= cut)) / cut
        if metric == "ndcg_loss1":
            return gains[i] * inverse(first) * lifted(first) if i != j else 0.0
        if labels[i] <= labels[j]:
            return 0.0
        apart = abs(first - second)
        delta = (inverse(apart) - inverse(apart + 1)) * lifted(max(first, second))
        rho = abs(inverse(first) * (first <= cut) - inverse(second) * (second <= cut))
        return {"ndcg_loss2": delta, "lambda_rank": rho, "ndcg_loss2++": rho + mu * delta}[metric] * (
            gains[i] - gains[j]
        )

    return np.array([[weight(i, j) for j in range(count)] for i in range(count)])


def weighted_logistic(weights, scores, sigma=1.0):
    gaps = np.asarray(scores)[:, None] - np.asarray(scores)[None, :]
    return (weights * np.logaddexp(0.0, -sigma * gaps)).sum() / math.log(2.0)


def lambda_loss(labels, scores, sigma=1.0, **arguments):
    return weighted_logistic(lambda_weights(labels, scores, **arguments), scores, sigma)


def adr_mse(labels, scores, alpha=1.0):
    """Schlatt et al. 2024: the squared errors of approximate ranks, discounted by the ranks of the teacher."""
    ranks = average_ranks(labels)
    return np.mean((ranks - approx_positions(scores, alpha)) ** 2 / np.log2(1.0 + ranks))


def mean_squared(labels, scores):
    return np.mean((np.asarray(labels) - np.asarray(scores)) ** 2)


BASELINES = {
    "adr_mse": adr_mse,
    "bsl": bsl,
    "calibrated_softmax": calibrated_softmax,
    "psl": psl,
    "softmax_at_k": softmax_at_k,
    "list_ap": lambda labels, scores, **arguments: 1.0 - list_ap(labels, scores, **arguments),
    "lambda_loss": lambda_loss,
    "list_mle": list_mle,
    "list_net": list_net,
    "mean_squared": mean_squared,
    "pairwise_hinge": pairwise_hinge,
    "rank_net": rank_net,
    "regression_compatible": regression_compatible,
    "sigmoid_cross_entropy": sigmoid_cross_entropy,
    "softmax": softmax_loss,
    "unique_softmax": unique_softmax,
    "coupled_rankdistil": coupled_rankdistil,
    "gumbel_approx_ndcg": gumbel_approx_ndcg,
    "pl_rank_ndcg": pl_rank_ndcg,
    "poly1_softmax": poly1_softmax,
    "xe_ndcg": xe_ndcg,
    "pairwise_qr": pairwise_qr,
    "pairwise_logistic": pairwise_logistic,
    "pairwise_mse": pairwise_mse,
    "pairwise_soft_zero_one": pairwise_soft_zero_one,
    "yeti_logistic": yeti_logistic,
}
