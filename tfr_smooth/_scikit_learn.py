"""What scikit-learn asks of an estimator besides its arguments. Only what it calls imports it."""

import functools
import inspect
from typing import Any


def not_fitted() -> ValueError:
    """Returns scikit-learn's error of an estimator that is not fitted, or without scikit-learn a `ValueError`."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        NotFittedError = ValueError
    return NotFittedError("`fit` must be called first.")


class ScikitLearn:
    """Tags, requests of metadata, and the diagram of notebooks."""

    _estimator_type: str | None = None  # or "regressor"

    def __sklearn_tags__(self) -> Any:
        """Returns scikit-learn's tags."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        tags = Tags(estimator_type=self._estimator_type, target_tags=TargetTags(required=False, positive_only=True))
        tags.input_tags = InputTags(allow_nan=True, categorical=True, string=True)
        tags.regressor_tags = RegressorTags() if self._estimator_type else None
        return tags

    def get_metadata_routing(self) -> Any:
        """Returns the arguments of `fit`, `predict` and `score` that scikit-learn's searches and pipelines pass on."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return self._metadata_request
        requests = MetadataRequest(owner=type(self).__name__)
        for method in ("fit", "predict", "score"):
            for name in {*[*inspect.signature(getattr(self, method)).parameters][1:]} - {"y"}:
                getattr(requests, method).add_request(param=name, alias=None)
        return requests

    def _set_request(self, method: str, **requests: bool | str | None) -> Any:
        """Requests arguments of a method, such as `qid=True`, where scikit-learn's metadata routing is enabled.

        Args:
          method: The method.
          **requests: By the name of the argument, True to get it, False not to get it, None to refuse it, or the name
            by which it is passed.

        Returns:
          The estimator.
        """
        routing = self.get_metadata_routing()
        for name, alias in requests.items():
            if name not in (known := getattr(routing, method).requests):
                raise TypeError(f"`{name}` must be an argument of `{method}`, one of {sorted(known)}.")
            getattr(routing, method).add_request(param=name, alias=alias)
        self._metadata_request = routing  # which scikit-learn clones
        return self

    set_fit_request = functools.partialmethod(_set_request, "fit")
    set_predict_request = functools.partialmethod(_set_request, "predict")
    set_score_request = functools.partialmethod(_set_request, "score")

    def _repr_html_(self) -> str | None:
        """Returns scikit-learn's diagram for notebooks, which show the constructor call without scikit-learn."""
        try:
            from sklearn.utils import estimator_html_repr
        except ImportError:
            return None
        return estimator_html_repr(self)
