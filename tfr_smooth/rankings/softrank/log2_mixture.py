r"""NDCG's discount as a mixture of exponentials, which have simple expectations over sums of independent contests.

$D(r) = 1 / \log_2(2 + r)$ is completely monotone, as the reciprocal of a Bernstein function of r. So it is a mixture of
exponentials with positive weights (Bernstein's theorem), and $E[z^r]$ is a product over the contests.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

# Number of ranks -> (weight, decay) of each term: a non-negative least squares fit on a logarithmic grid of rates. In
# graphs with unknown list length, the largest is the limit; the pairs of a list of this length would take 34 GB.
# fmt: off
_FITS: dict[int, tuple[tuple[float, float], ...]] = {
    64: (
        (0.13208553363, 0.00031245117696), (0.0027754437345, 0.0052418160787), (0.062149857662, 0.011702793004),
        (0.052194995364, 0.038693098622), (0.016947734159, 0.057348665511), (0.045361685463, 0.084594687814),
        (0.046937513224, 0.12390733092), (0.061628033541, 0.17961164821), (0.07472052596, 0.25643285098),
        (0.089944169525, 0.35817629095), (0.10219026155, 0.48503779343), (0.10619918382, 0.62962777143),
        (0.09542371721, 0.77383916957), (0.066594257583, 0.89190370787), (0.036888227854, 0.9641915213),
        (0.0079588597205, 0.99999999999),
    ),
    1024: (
        (0.087262848534, 1.9531059266e-05), (0.017141655145, 0.0004859126556), (0.019263338629, 0.0016210135683),
        (0.012862223035, 0.0036168935643), (0.010217130564, 0.005400558354), (0.012865774089, 0.0080602695982),
        (0.015168656228, 0.012021917847), (0.017854067837, 0.017913070899), (0.021584245448, 0.026651900182),
        (0.026107578296, 0.039567223209), (0.032094123315, 0.058550249473), (0.039641254964, 0.08622302223),
        (0.049341258716, 0.12607077339), (0.061245291452, 0.18240707814), (0.075314462079, 0.25990410357),
        (0.089991846742, 0.36224657123), (0.10221127621, 0.48942865127), (0.10567283331, 0.6338200379),
        (0.094660557557, 0.77718323847), (0.06558127049, 0.89394833019), (0.036196704224, 0.96503367222),
        (0.0077216031283, 0.99999999999),
    ),
    65536: (
        (0.059846771675, 3.0517573468e-07), (0.00032762636288, 7.2575530393e-06), (0.00976108488, 1.6026871191e-05),
        (0.0066289384441, 5.2593425058e-05), (0.001079322317, 7.8154883436e-05), (0.0046718551266, 0.00011613900128),
        (0.0034988378076, 0.00017258221763), (0.0045520770011, 0.0002564531547), (0.0047062045445, 0.00038107564498),
        (0.005385158715, 0.00056624083476), (0.0059153906152, 0.00084134017905), (0.0066972490102, 0.0012500086753),
        (0.0075214427018, 0.0018569972752), (0.0085840147028, 0.0027583246766), (0.00981031682, 0.0040962291732),
        (0.011353433484, 0.0060810926266), (0.013215769318, 0.0090233723303), (0.015566983252, 0.013379633673),
        (0.018491360094, 0.019817860203), (0.022224416392, 0.029307793068), (0.02696271228, 0.043240752346),
        (0.033053327921, 0.063577120289), (0.040808396977, 0.093002055599), (0.050618018633, 0.13502946955),
        (0.062611032169, 0.19391379343), (0.076499505524, 0.27409591599), (0.090692133237, 0.3787575548),
        (0.10180443188, 0.50707827931), (0.10379822066, 0.65049286068), (0.091185664608, 0.79031958216),
        (0.062016800151, 0.90186848132), (0.033111608793, 0.96824675526), (0.0069998939032, 0.99999999999),
    ),
}
# fmt: on


def log2_mixture(length: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    r"""Returns the log discount as a mixture: $1 / \log_2(2 + r) = \sum_m w_m (1 - c_m)^r$ for r = 0 .. length - 1.

    Args:
      length: The number of ranks, 0 to 65,536: a Python int or an int32 scalar.

    Returns:
      The weights w [M], positive with sum 1, and the decays c [M], in (0, 1); float64. The relative error is below
      1e-7 at every rank. M is 16 up to 64 ranks, 22 up to 1,024 and 33 above.

    Raises:
      ValueError: If `length` is an int above 65,536.

    Example:
      >>> from tfr_smooth.rankings.softrank.log2_mixture import log2_mixture
      >>> weights, decays = log2_mixture(40)
      >>> print(((weights * (1 - decays) ** 6).numpy().sum() * 3).round(6))
      1.0
    """
    if isinstance(length, int):
        if length > max(_FITS):
            raise ValueError(f"`length` must be at most {max(_FITS)} for the log discount of SoftRank, got {length}.")
        fit = np.array(_FITS[next(bound for bound in _FITS if length <= bound)])
        weights, decays = tf.unstack(tf.constant(fit), axis=1)
    else:
        sizes = [len(fit) for fit in _FITS.values()]
        table = np.stack([np.pad(fit, [(0, max(sizes) - len(fit)), (0, 0)]) for fit in _FITS.values()])
        row = tf.searchsorted(list(_FITS), [length])[0]
        weights, decays = tf.unstack(tf.constant(table)[row, : tf.constant(sizes)[row]], axis=1)
    return weights / tf.reduce_sum(weights), decays  # The table is rounded.
