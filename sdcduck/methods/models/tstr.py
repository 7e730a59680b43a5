"""Train on synthetic records, test on real ones: whether a model is as good that never saw a true record."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.models.forests import Features
from sdcduck.methods.models.scores import Predicted, predicted

MODELS = ("random", "naive_bayes", "tree", "forest", "extra_trees", "knn", "logistic")


def classifier(name: str, seed: int) -> Any:
    """A classifier of scikit-learn with its defaults; trees have leaves of at least 5."""
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    makers: dict[str, Callable[[], Any]] = {
        "random": lambda: DummyClassifier(strategy="stratified", random_state=seed),
        "naive_bayes": GaussianNB,
        "tree": lambda: DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
        "forest": lambda: RandomForestClassifier(random_state=seed),
        "extra_trees": lambda: ExtraTreesClassifier(random_state=seed),
        "knn": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }
    return makers[name]()


def tested(
    name: str, seed: int, features: Features, positive: NDArray[np.bool_], test: Features, truth: NDArray[np.bool_]
) -> Predicted:
    """How good one kind of model, trained on these records, is on those.

    >>> x = np.arange(40, dtype=np.float32)[:, None]
    >>> tested("tree", 0, x, x[:, 0] > 20, x, x[:, 0] > 20).auc
    1.0
    """
    model = classifier(name, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of steps that were not enough: the score says it
        model.fit(features, positive)
        score = np.asarray(model.predict_proba(test)[:, list(model.classes_).index(True)], dtype=np.float64)
    # The random order of additions in a forest of several threads is below these digits.
    score = np.round(score, 12)
    return predicted(truth, score, score > 0.5)
