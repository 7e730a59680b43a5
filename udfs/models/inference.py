"""What a model adds to guesses, and whether synthetic records train as well: planners of ``sql/models_tables.sql``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planners
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.models.inference import ATTACKS, Pool, gain, inferred, mean_and_deviation
from sdcduck.methods.models.tstr import MODELS, tested
from sdcduck.udfs.arguments import choice, needed, share, whole, wrong
from sdcduck.udfs.compared import Compared
from sdcduck.udfs.models.features import Records, need_scikit_learn, threads_of
from sdcduck.udfs.rows import table_of

_MOST_REPEATS, _MOST_TREES, _MOST_CLASSES = 1000, 10_000, 100
_LEAST_RECORDS = 4

INFERENCE_COLUMNS = {
    "attack": "VARCHAR", "accuracy": "DOUBLE", "accuracy_sd": "DOUBLE", "precision_macro": "DOUBLE",
    "recall_macro": "DOUBLE", "gain_over": "VARCHAR", "gain": "DOUBLE", "ci_low": "DOUBLE", "ci_high": "DOUBLE",
    "recall_gain": "DOUBLE", "people": "VARCHAR", "warning": "VARCHAR",
}  # fmt: skip
TSTR_COLUMNS = {
    "model": "VARCHAR", "trained_on": "VARCHAR", "records": "BIGINT", "auc": "DOUBLE", "mcc": "DOUBLE", "f1": "DOUBLE",
    "accuracy": "DOUBLE", "warning": "VARCHAR",
}  # fmt: skip


def plan_attribute_inference(
    session: Session, attacker: str | None, victims: str | None, sensitive: str | None, keys: list[str] | None,
    prediction: str | None, repeats: int | None, trees: int | None, confidence: float | None, seed: int | None,
    member: str | None,
) -> Rows:  # fmt: skip
    """``sdc_attribute_inference``: three attacks, or two without a model; of members and of others, or of all."""
    need_scikit_learn()
    tables = {"attacker": attacker} | ({} if victims is None else {"victims": victims})
    cursor = session.cursor()
    secret = needed(sensitive, "sensitive", "name the column that is guessed")
    (its_name,) = Compared.read(cursor, tables, [secret], argument="sensitive").names
    answer = () if prediction is None else Compared.read(cursor, tables, [prediction], argument="prediction").names
    inside = () if member is None else Compared.read(cursor, tables, [member], argument="member").names
    if inside and (victims is not None or not answer):
        raise SDCError(
            "argument 'member' halves the records of 'attacker' and compares what a model says of them: it needs "
            "'prediction', and leaves out 'victims'"
        )
    everything = Compared.read(cursor, tables, [])
    known = everything.named(keys, "keys", leaving_out=[its_name, *answer, *inside])
    if inside and inside[0] in (*known, its_name, *answer):
        raise SDCError(f"column '{inside[0]}' tells who was in the training data: it cannot be anything else")
    for name in (its_name, *answer):
        if name in known:
            raise SDCError(f"column '{name}' cannot be among the keys: it is guessed, or what the model says")
    if its_name in answer:
        raise SDCError(f"column '{its_name}' cannot be both what is guessed and what the model says")
    compared = Compared.read(cursor, tables, [*known, its_name, *answer, *inside])
    if inside and compared.kind(inside[0]) != "boolean":
        raise SDCError(f"argument 'member' must name a BOOLEAN column: '{inside[0]}' is none")
    times = whole(repeats, "repeats", least=1, most=_MOST_REPEATS)
    size = whole(trees, "trees", least=1, most=_MOST_TREES)
    level = share(confidence, "confidence", zero=False, one=False)
    start = whole(seed, "seed", least=0)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            records = Records(cursor, compared)
            threads = threads_of(cursor)
        classes, values = records.classes(its_name)
        if min(records.sizes) < (_LEAST_RECORDS if victims is None else 1):
            raise SDCError("there are too few records: the attacker and the victims each need some")
        if (classes < 0).any():
            raise SDCError(f"column '{its_name}' holds NULL: leave such records out, or make them a value of their own")
        if len(values) < 2:
            raise SDCError(f"column '{its_name}' has one value only: there is nothing to guess")
        if len(values) > _MOST_CLASSES:
            raise SDCError(f"column '{its_name}' has more than {_MOST_CLASSES} values: cut it into classes in a query")
        own = None if victims is None else records.sizes[0]
        told = records.features(answer) if answer else None
        pool = Pool(records.features(known), told, classes, own)
        if not inside:
            found = inferred(pool, times, size, start, threads, shown_checkpoint())
            return table_of(_attacks(found, level), INFERENCE_COLUMNS)
        both = [pool.of(part) for part in _parts(records, inside[0])]
        of_each = [inferred(part, times, size, start, threads, shown_checkpoint()) for part in both]
        return table_of(_of_members(of_each, level), INFERENCE_COLUMNS)

    return Rows(make)


def _attacks(found: list[Any], confidence: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for place, attack in enumerate(ATTACKS[: len(found[0])]):
        ones = [repeat[place] for repeat in found]
        accuracy = [one.accuracy for one in ones]
        mean, deviation = mean_and_deviation(accuracy)
        row: dict[str, Any] = {
            "attack": attack, "accuracy": mean, "accuracy_sd": _known(deviation),
            "precision_macro": float(np.mean([one.precision for one in ones])),
            "recall_macro": float(np.mean([one.recall for one in ones])),
        }  # fmt: skip
        if place:
            before = [repeat[place - 1] for repeat in found]
            more, low, high = gain(accuracy, [one.accuracy for one in before], confidence)
            recall = float(np.mean([one.recall - other.recall for one, other in zip(ones, before, strict=True)]))
            row |= {"gain_over": ATTACKS[place - 1], "gain": more, "ci_low": _known(low), "ci_high": _known(high),
                    "recall_gain": recall}  # fmt: skip
        if attack == "black_box":
            row["warning"] = "the attacker is told what the model says of the true record of each victim"
        rows.append(row)
    return rows


def _parts(records: Records, name: str) -> list[np.ndarray[Any, Any]]:
    """Places of members, and of others."""
    codes, values = records.classes(name)
    if (codes < 0).any():
        raise SDCError(f"column '{name}' holds NULL: leave such records out")
    true = np.array([value == "true" for value in values])[codes]
    parts = [np.flatnonzero(true), np.flatnonzero(~true)]
    if min(map(len, parts)) < _LEAST_RECORDS:
        raise SDCError(f"column '{name}' must tell at least {_LEAST_RECORDS} members and as many others")
    return parts


def _of_members(of_each: list[list[Any]], confidence: float) -> list[dict[str, Any]]:
    """The rows of members, those of others, and what the former lose by being members."""
    rows = [
        row | {"people": people}
        for people, found in zip(("members", "others"), of_each, strict=True)
        for row in _attacks(found, confidence)
    ]
    leaks = [
        [[repeat[2].accuracy - repeat[1].accuracy, repeat[2].recall - repeat[1].recall] for repeat in found]
        for found in of_each
    ]
    accuracy, recall = ([[gains[place] for gains in found] for found in leaks] for place in range(2))
    more, low, high = gain(accuracy[0], accuracy[1], confidence)
    row = {
        "attack": "black_box", "gain_over": "others", "gain": more, "ci_low": _known(low), "ci_high": _known(high),
        "recall_gain": float(np.mean(recall[0]) - np.mean(recall[1])), "people": "membership",
    }  # fmt: skip
    return [*rows, row]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def plan_tstr(
    session: Session, original: str | None, synthetic: str | None, holdout: str | None, outcome: str | None,
    columns: list[str] | None, positive: str | None, models: list[str] | None, seed: int | None,
) -> Rows:  # fmt: skip
    """``sdc_tstr``: the same model trained on original and on synthetic records."""
    need_scikit_learn()
    needed(holdout, "holdout", "name a table or view, or hold a query in parentheses")
    tables = {"original": original, "synthetic": synthetic, "holdout": holdout}
    cursor = session.cursor()
    wanted = needed(outcome, "outcome", "name the column that is predicted")
    (its_name,) = Compared.read(cursor, tables, [wanted], argument="outcome").names
    known = Compared.read(cursor, tables, columns, leaving_out=its_name).names
    if its_name in known:
        raise SDCError(f"column '{its_name}' cannot be predicted by itself (argument 'columns')")
    compared = Compared.read(cursor, tables, [*known, its_name])
    named = needed(models, "models", f"name some of {', '.join(MODELS)}")
    kinds = [choice(name, "models", MODELS, each=True) for name in named]
    start = whole(seed, "seed", least=0, most=2**32 - 1)

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            records = Records(cursor, compared)
        if not all(records.sizes):
            raise SDCError("one of the tables has no records")
        truth = _positive(records, its_name, positive)
        features = records.features(known)
        ends = np.cumsum([0, *records.sizes])
        original_part, synthetic_part, test = (slice(ends[i], ends[i + 1]) for i in range(3))
        check, rows = shown_checkpoint(), []
        for place, kind in enumerate(kinds):
            for half, (trained_on, part) in enumerate((("original", original_part), ("synthetic", synthetic_part))):
                check(2 * place + half, 2 * len(kinds))
                row: dict[str, Any] = {"model": kind, "trained_on": trained_on, "records": part.stop - part.start}
                if truth[part].all() or not truth[part].any():
                    rows.append(row | {"warning": "all of these records have the same outcome: nothing can be learned"})
                    continue
                if kind == "knn" and part.stop - part.start < 5:
                    rows.append(row | {"warning": "fewer records than neighbours"})
                    continue
                one = tested(kind, start, features[part], truth[part], features[test], truth[test])
                said = "all of the holdout has the same outcome" if math.isnan(one.auc) else None
                rows.append(
                    row
                    | {"auc": _known(one.auc), "mcc": one.mcc, "f1": one.f1, "accuracy": one.accuracy, "warning": said}
                )
        return table_of(rows, TSTR_COLUMNS)

    return Rows(make)


def _positive(records: Records, name: str, positive: str | None) -> Any:
    """Which records have the outcome that is predicted."""
    codes, values = records.classes(name)
    if (codes < 0).any():
        raise SDCError(f"column '{name}' holds NULL: leave such records out")
    if positive is None:
        if len(values) != 2:
            raise SDCError(f"column '{name}' has {len(values)} values and not two: say which one 'positive' is")
        return codes == 1
    shown = [str(value) if isinstance(value, str) else f"{value:.17g}" for value in values]
    wanted = positive.strip()
    try:
        wanted = f"{float(wanted):.17g}" if values and not isinstance(values[0], str) else wanted
    except ValueError:
        wanted = ""
    if wanted not in shown:
        raise wrong("positive", f"be a value of column '{name}'")
    return codes == shown.index(wanted)


PLANNERS = planners(plan_attribute_inference, plan_tstr)
