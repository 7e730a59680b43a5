"""What the structure of a trained model gives away: the checks of the guidelines for safe rooms.

Ritchie et al. (2023), "Machine learning models in trusted research environments"; the checks of SACRO-ML are the
example. What is not on a list here is for somebody to look at, and never passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sdcduck.methods.models.saved import Node, Saved

_TREES = frozenset(["DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"])
_OF_TREES = {
    name: frozenset(
        ["estimator", "estimator_", "estimators_", "estimator_params", "classes_", "n_classes_", *more.split()]
    )
    for name, more in {
        "RandomForestClassifier": "",
        "RandomForestRegressor": "",
        "ExtraTreesClassifier": "",
        "ExtraTreesRegressor": "",
        "BaggingClassifier": "estimators_features_ _seeds",
        "BaggingRegressor": "estimators_features_ _seeds",
        "AdaBoostClassifier": "estimator_weights_ estimator_errors_",
        "AdaBoostRegressor": "estimator_weights_ estimator_errors_",
        "GradientBoostingClassifier": "_loss init_ train_score_ _rng",
        "GradientBoostingRegressor": "_loss init_ train_score_ _rng",
    }.items()
}
"""Models that are made of trees, and what else they may hold."""
_COEFFICIENTS = "coef_ intercept_ classes_ n_iter_ "
_PARAMETRIC = {
    name: frozenset(more.split())
    for name, more in {
        "LinearRegression": _COEFFICIENTS + "singular_",
        "Ridge": _COEFFICIENTS,
        "RidgeClassifier": _COEFFICIENTS + "_label_binarizer",
        "Lasso": _COEFFICIENTS + "dual_gap_",
        "ElasticNet": _COEFFICIENTS + "dual_gap_",
        "LogisticRegression": _COEFFICIENTS,
        "LinearSVC": _COEFFICIENTS,
        "LinearSVR": _COEFFICIENTS,
        "Perceptron": _COEFFICIENTS + "class_weight_ expanded_class_weight_",
        "SGDClassifier": _COEFFICIENTS + "_expanded_class_weight standard_coef_ standard_intercept_ loss_function_ t_",
        "SGDRegressor": _COEFFICIENTS + "t_",
        "PoissonRegressor": _COEFFICIENTS + "_base_loss",
        "GammaRegressor": _COEFFICIENTS + "_base_loss",
        "TweedieRegressor": _COEFFICIENTS + "_base_loss",
        "GaussianNB": "theta_ var_ class_prior_ class_count_ classes_ epsilon_",
        "MLPClassifier": "coefs_ intercepts_ classes_ loss_curve_ hidden_layer_sizes best_loss_ t_ _label_binarizer",
        "MLPRegressor": "coefs_ intercepts_ loss_curve_ hidden_layer_sizes loss_ best_loss_ t_",
    }.items()
}
"""Models of a fixed number of parameters, and what they may hold."""
_FITTED = frozenset(["coef_", "intercept_", "coefs_", "intercepts_", "theta_", "var_", "class_prior_"])
"""Those of them that are parameters."""
_HARMLESS = {
    "Pipeline": frozenset(["steps"]),
    "StandardScaler": frozenset(["mean_", "var_", "scale_", "n_samples_seen_"]),
    "LabelBinarizer": frozenset(["classes_"]),
    "Normalizer": frozenset[str](),
    "PolynomialFeatures": frozenset[str](),
    "DummyClassifier": frozenset(["classes_", "class_prior_", "n_classes_"]),
    "DummyRegressor": frozenset(["constant_"]),
}
_RECORDS = frozenset(
    [
        "KNeighborsClassifier",
        "KNeighborsRegressor",
        "RadiusNeighborsClassifier",
        "RadiusNeighborsRegressor",
        "NearestNeighbors",
        "KNeighborsTransformer",
        "LocalOutlierFactor",
        "KernelDensity",
        "KNNImputer",
        "SVC",
        "NuSVC",
        "SVR",
        "NuSVR",
        "OneClassSVM",
        "KernelRidge",
        "GaussianProcessClassifier",
        "GaussianProcessRegressor",
        "LabelPropagation",
        "LabelSpreading",
        "KernelPCA",
        "Isomap",
        "DBSCAN",
        "TSNE",
    ]
)
"""Models that are the records that they were fitted to, or some of them."""
_OF_RECORDS = frozenset(
    [
        "_fit_X",
        "_y",
        "X_fit_",
        "X_train_",
        "y_train_",
        "support_vectors_",
        "dual_coef_",
        "oob_prediction_",
        "oob_decision_function_",
        "_sample_weight",
        "estimators_samples_",
        "embedding_",
        "labels_",
        "core_sample_indices_",
    ]
)
"""What has a row for a record, whatever model holds it."""
_MOST_TEXT = 4096
"""Characters of settings that a model has at most: more may be data."""


_MOST_BESIDES = 10_000
"""Numbers that it holds at most beside trees and parameters."""


@dataclass(frozen=True)
class Finding:
    """What was looked at.

    Attributes:
        part: of the model; nothing for all of it.
        kind: its class.
        measure: what was counted.
        value: how many there are.
        wanted: how many there should be at least, or at most.
        status: 'pass', 'review' or 'fail'.
        why: the rule.
    """

    part: str
    kind: str
    measure: str
    value: float | None
    wanted: float | None
    status: str
    why: str | None


def findings(saved: Saved, records: int | None, threshold: int, min_df: int) -> list[Finding]:
    """All that is to say of a model."""
    model = saved.model
    found = list(_leaves(saved, threshold))
    for node in model.all_held():
        if node.is_object and not node.module.startswith("sklearn._loss"):
            found += _of_object(saved, node, records, threshold, min_df)
    if saved.unused:
        found.append(
            Finding("", model.kind, "files", len(saved.unused), 0, "review", "files that the model does not use")
        )
    if not any(one.status for one in found):
        found.append(Finding("", model.kind, "class", None, None, "review", "not a model that was fitted"))
    return found


def _of_object(saved: Saved, node: Node, records: int | None, threshold: int, min_df: int) -> Iterator[Finding]:
    kind = node.kind if node.module.startswith("sklearn.") else ""
    carried = [name for name, one in node.held.items() if name in _OF_RECORDS and one.text != "null"]
    if kind in _RECORDS or carried:
        rows = [len(array) for name in carried if (array := saved.array(node.held[name])) is not None and array.ndim]
        yield Finding(node.part, node.kind, "records", max(rows, default=None), 0, "fail", "carries records")
        return
    if kind in _TREES:
        allowed = frozenset(["tree_", "classes_", "n_classes_"])
        tree = node.held.get("tree_")
        if (tree is None or not _is_tree(tree)) and not node.part.endswith(("estimator", "estimator_")):
            yield _unknown(node, "not fitted")
    elif kind in _OF_TREES:
        allowed = _OF_TREES[kind]
        if not any(map(_is_object_in_list, node.held.get("estimators_", node).held.values())):
            yield _unknown(node, "not fitted")
    elif kind in _PARAMETRIC:
        allowed = _PARAMETRIC[kind]
        yield from _degrees(saved, node, records, threshold, min_df)
    elif kind in _HARMLESS:
        allowed = _HARMLESS[kind]
    else:
        yield _unknown(node, "not on the list of models: somebody has to look at it")
        return
    besides = sorted(name for name, one in node.held.items() if not one.is_setting and name not in allowed)
    if besides:
        yield _unknown(node, f"holds {', '.join(besides[:5])} besides")
    if sum(_size(saved, one) for name, one in node.held.items() if name in allowed - _FITTED) > _MOST_BESIDES:
        yield _unknown(node, "holds long arrays besides")
    if sum(len(one.text) for one in node.held.values()) > _MOST_TEXT:
        yield _unknown(node, "holds long texts")
    if kind in _HARMLESS:
        yield Finding(node.part, node.kind, "class", None, None, "pass", None)


def _is_tree(node: Node) -> bool:
    return node.kind == "Tree" and node.module == "sklearn.tree._tree"


def _is_object_in_list(node: Node) -> bool:
    """Whether it is a model, or a list of models."""
    return node.is_object or (node.loader == "ListNode" and any(one.is_object for one in node.held.values()))


def _size(saved: Saved, node: Node) -> int:
    """Numbers in an array, or in a list of them; of what cannot be read, too many. Trees are looked at elsewhere."""
    if node.is_object or node.loader == "TreeNode":
        return 0
    if node.file:
        array = saved.array(node)
        return _MOST_BESIDES + 1 if array is None else int(array.size)
    return sum(_size(saved, one) for one in node.held.values())


def _unknown(node: Node, why: str) -> Finding:
    return Finding(node.part, node.kind, "class", None, None, "review", why)


def _degrees(saved: Saved, node: Node, records: int | None, threshold: int, min_df: int) -> Iterator[Finding]:
    """Whether parameters are far fewer than records."""
    parts = [one for name, held in node.held.items() if name in _FITTED for one in held.all_held() if one.file]
    arrays = [saved.array(one) for one in parts]
    counts = saved.array(node.held.get("class_count_"))
    if not arrays or any(array is None for array in arrays):
        yield _unknown(node, "its parameters cannot be read")
        return
    number = sum(array.size for array in arrays if array is not None)
    if counts is not None:
        smallest = float(counts.min()) if counts.size else 0.0
        low = smallest < threshold
        yield Finding(
            node.part,
            node.kind,
            "smallest class",
            smallest,
            threshold,
            "fail" if low else "pass",
            "threshold" if low else None,
        )
        records = int(counts.sum()) if records is None else records
    if records is None:
        yield Finding(
            node.part, node.kind, "degrees of freedom", None, min_df, "review", "say how many records were fitted"
        )
        return
    enough = records - number >= min_df
    yield Finding(
        node.part, node.kind, "degrees of freedom", records - number, min_df, "pass" if enough else "fail",
        None if enough else "degrees of freedom",
    )  # fmt: skip


def _leaves(saved: Saved, threshold: int) -> Iterator[Finding]:
    """Of all trees together: the smallest leaf, and leaves whose records are all the same."""
    sizes, alike, kind, unread = [], 0, "", 0
    for node in saved.model.all_held():
        if not _is_tree(node):
            continue
        nodes, values = saved.array(node.held.get("nodes")), saved.array(node.held.get("values"))
        fields = ("left_child", "n_node_samples", "impurity")
        if (
            nodes is None
            or values is None
            or not set(fields) <= set(nodes.dtype.names or ())
            or len(nodes) != len(values)
        ):
            unread += 1
            continue
        leaf = nodes["left_child"] < 0
        sizes.append(nodes["n_node_samples"][leaf])
        # Impurities are differences, and rounded.
        same = nodes["impurity"][leaf] <= 1e-12 * max(1.0, float(np.abs(nodes["impurity"]).max(initial=0)))
        if values.ndim == 3 and values.shape[2] > 1:
            same |= ((values[leaf] > 0).sum(axis=2) <= 1).any(axis=1)
        alike += int(same.sum())
        kind = kind or saved.model.kind
    if unread:
        yield Finding("", saved.model.kind, "trees", unread, 0, "review", "trees that cannot be read")
    if not sizes:
        return
    everything = np.concatenate(sizes)
    smallest = int(everything.min()) if len(everything) else 0
    low = smallest < threshold
    yield Finding(
        "", kind, "smallest leaf", smallest, threshold, "fail" if low else "pass", "threshold" if low else None
    )
    yield Finding(
        "", kind, "leaves of one class", alike, 0, "fail" if alike else "pass", "class disclosure" if alike else None
    )
