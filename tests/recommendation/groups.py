"""Users who like the items of their group, and the check of an error."""

import numpy as np
from scipy import sparse

from tfr_smooth import recommendation

# The groups of users and items.
GROUPS = np.arange(24) // 6, np.arange(24) // 6


def likes(seed=0):
    """Returns a matrix of 24 users and items: most of the pairs within a group."""
    same = GROUPS[0][:, None] == GROUPS[1]
    return same & (np.random.RandomState(seed).rand(24, 24) < 0.8)


def in_time(lists, num_items, user_ids=None, item_ids=None):
    """Returns interactions of users with the items of lists, at the times 0, 1, .."""
    times = np.full([len(lists), num_items], -1.0)
    for user, items in enumerate(lists):
        times[user, items] = np.arange(len(items))
    matrix = sparse.csr_array(times >= 0.0)
    return recommendation.Interactions(matrix, user_ids, item_ids, times=times[times >= 0.0])


def likes_in_time(seed=0, **ids):
    """Returns interactions of `likes` in a random order."""
    random = np.random.default_rng(seed)
    return in_time([random.permutation(np.flatnonzero(row)) for row in likes(seed)], 24, **ids)
