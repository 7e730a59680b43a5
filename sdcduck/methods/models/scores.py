"""How often a guess or a prediction is right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.models.roc import Floats, Ranked

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Guessed:
    """Accuracy, and precision and recall as the mean over the classes."""

    accuracy: float
    precision: float
    recall: float


def guessed(truth: Codes, guess: Codes) -> Guessed:
    """Of guesses. Classes are those that somebody has or that were guessed; one never guessed has precision 0.

    >>> guessed(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1]))
    Guessed(accuracy=0.5, precision=0.4444444444444444, recall=0.5)
    """
    classes = int(max(truth.max(), guess.max())) + 1
    table = np.bincount(truth * classes + guess, minlength=classes * classes).reshape(classes, classes)
    right, true, named = np.diag(table), table.sum(axis=1), table.sum(axis=0)
    there = (true > 0) | (named > 0)
    precision, recall = (right / np.maximum(whole, 1) for whole in (named, true))
    return Guessed(float(right.sum() / len(truth)), float(precision[there].mean()), float(recall[there].mean()))


def by_shares(known: Codes, truth: Codes) -> Guessed:
    """What somebody may expect who draws from the shares of the classes that he knows.

    >>> by_shares(np.array([0, 0, 0, 1]), np.array([0, 1])).accuracy
    0.5
    """
    classes = int(max(known.max(), truth.max())) + 1
    p, q = (np.bincount(codes, minlength=classes) / len(codes) for codes in (known, truth))
    there = (p > 0) | (q > 0)
    # Whom he calls s, he calls so by chance: a share q(s) of them is, and he finds a share p(s) of those who are.
    recall = np.where(q > 0, p, 0.0)[there].mean()
    return Guessed(float(p @ q), float(np.where(p > 0, q, 0.0)[there].mean()), float(recall))


@dataclass(frozen=True)
class Predicted:
    """How good predictions of two classes are: area, Matthews correlation, and F1 and accuracy at a half."""

    auc: float
    mcc: float
    f1: float
    accuracy: float


def predicted(truth: NDArray[np.bool_], score: Floats, called: NDArray[np.bool_]) -> Predicted:
    """Of scores, and of who was called positive.

    >>> truth = np.repeat([True, False, True, False], [30, 20, 10, 40])
    >>> called = np.repeat([True, False], 50)
    >>> found = predicted(truth, called.astype(float), called)
    >>> found.accuracy, round(found.f1, 4), round(found.mcc, 4)
    (0.7, 0.6667, 0.4082)
    """
    tp, fp = int((truth & called).sum()), int((~truth & called).sum())
    fn, tn = int((truth & ~called).sum()), int((~truth & ~called).sum())
    below = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    positive = 2 * tp + fp + fn
    return Predicted(
        Ranked.of(score).counted(truth).area()[0] if 0 < truth.sum() < len(truth) else math.nan,
        (tp * tn - fp * fn) / below if below else 0.0,
        2 * tp / positive if positive else 0.0,
        (tp + tn) / len(truth),
    )
