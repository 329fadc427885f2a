"""What the columns do to the scores of a fitted `Ranker`."""

from __future__ import annotations

from typing import Any

from tfr_smooth import _arguments, training
from tfr_smooth.ranker.fitted import FittedRanker
from tfr_smooth.training.explanation import explain


class ExplainableRanker(FittedRanker):
    """The methods of a fitted `Ranker` that explain its scores."""

    def explain(
        self,
        X: Any,
        *,
        qid: Any = None,
        group: Any = None,
        rows: Any = None,
        background: Any = None,
        samples: int = 100,
    ) -> training.Explanation:
        r"""Explains scores: how much each column adds to the score of a document, against others.

        The contributions are Shapley values of the columns (Lundberg and Lee, "A Unified Approach to Interpreting Model
        Predictions", NIPS 2017):

        $$\phi_c = \frac{1}{|Z| \, C!} \sum_{z \in Z} \sum_\pi f(x_{P(\pi, c) \cup c}, z) - f(x_{P(\pi, c)}, z)$$

        for the score f of a document of the background Z, of which some columns have the values of the document x:
        those before c in the permutation $\pi$ of the C columns. They sum to the score minus the mean score of the
        background.

        By default, the background is the list of the document itself, so the contributions tell why it ranks above or
        below the others: columns that are the same in the whole list contribute 0. A column is replaced with all that
        was prepared of it: with its rank within the list, which stays that in the actual list. Statistics of one column
        count as this column; a match of two columns and a statistic of two columns count as columns of their own.

        Args:
          X: A table as for `predict`, with the documents of whole lists.
          qid: The query of each row, unless the table has the column of `fit`.
          group: The number of rows of each query.
          rows: The rows of the table to explain: one or several numbers, counted from 0, a slice, or a mask with a
            boolean for each row. None explains all.
          background: A table with other documents, such as a sample of the training table, with the column of queries
            if `predict` needs it. None for the list of each document.
          samples: The permutations per document, >= 1, each with its reverse: at least as many, and as many with each
            document of the background. Of a larger background, so many documents are used, evenly spaced in the order
            of their scores.

        Returns:
          The contributions; print them, or call the method `plot`.

        Raises:
          ValueError: If an argument is invalid; or if the ranker has a `network` or `normalization="min_max"`, with
            which a score can depend on all features of the list.

        Time: the documents times `samples` times twice the columns scores, half of it for a whole list. A list of 100
        documents and 20 columns takes about half a second. Memory O(documents * `samples` * columns) of a list.
        """
        samples = _arguments.integer("samples", samples, least=1)
        lists = self._lists(X, qid=qid, group=group, needs=["query"] if background is None else ())
        if self._plan.scores_lists:
            raise ValueError("`network` must be None and `normalization` not 'min_max' to explain scores, got others.")
        others = None if background is None else self._lists(background)
        return explain(self._scorer, self.features_, lists, others, rows, samples, self._params["seed"])
