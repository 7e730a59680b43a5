"""Whom masked texts are about: planners of ``sdc_text_risk`` and ``sdc_text_risk_documents``."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads, shown_checkpoint
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.text.links import Linked, closest, counts, likeliest, nearest, vectors, weights, wilson
from sdcduck.methods.text.models import unit
from sdcduck.udfs.arguments import choice
from sdcduck.udfs.rows import table_of
from sdcduck.udfs.source import Source, refuse_taken, source
from sdcduck.udfs.text.masks import Masker, text_column, words_of
from sdcduck.udfs.text.models import Model

_DOCUMENTS = {
    "predicted": "VARCHAR", "score": "DOUBLE", "margin": "DOUBLE", "true_rank": "BIGINT", "in_background": "BOOLEAN",
    "reidentified": "BOOLEAN",
}  # fmt: skip
_SUMMARY = {
    "n": "BIGINT", "n_null": "BIGINT", "reidentified": "BIGINT", "risk": "DOUBLE", "ci_low": "DOUBLE",
    "ci_high": "DOUBLE", "top_5": "DOUBLE", "cap": "DOUBLE", "random_guess": "DOUBLE", "warning": "VARCHAR",
}  # fmt: skip
_MOST_CLASSES = 5000
_FIRST = 5
_LOWER_BOUND = "a lower bound: an attacker with a language model may find more"
_LOWER_BOUND_OF_MODEL = "a lower bound: an attacker with a better model may find more"


@dataclass(frozen=True)
class _Attack:
    protected: Source
    person: str
    text: str
    background: str
    classifier: str
    masker: Masker | None
    model: Model | None

    @classmethod
    def read(
        cls, session: Session, protected: str | None, background: str | None, person: str | None, text: str | None,
        classifier: str | None, rules: list[str] | None, gazetteer: str | None, model: str | None,
    ) -> _Attack:  # fmt: skip
        one, other = (
            source(session.cursor(), given, name)
            for given, name in ((protected, "protected"), (background, "background"))
        )
        one.check_names(tuple(one.columns))
        how = choice(classifier, "classifier", ("nn", "linear"))
        if how == "linear" and find_spec("sklearn") is None:
            raise SDCError("classifier := 'linear' needs scikit-learn: pip install 'sdcduck[synthesis]'")
        masker = Masker.read(session, rules, gazetteer)
        who, what = other.column(person, "person"), text_column(other, text, "text")
        return cls(
            one, one.column(person, "person"), text_column(one, text, "text"),
            f"(SELECT {who}::VARCHAR AS person, {what} AS text FROM {other.sql} WHERE {who} IS NOT NULL "
            f"AND {what} IS NOT NULL)", how, masker if masker.rules or masker.terms else None,
            None if model is None else Model.read(session.cursor(), model),
        )  # fmt: skip

    def run(self, session: Session) -> _Found:
        """Different documents, whom each is about and whom the attacker names."""
        with reads(session.cursor()) as cursor:
            asked = cursor.sql(
                f"SELECT person, text, n, {self._clean('text')} AS clean, "
                f"CASE WHEN person IS NULL THEN NULL ELSE {_words('text')} END AS words FROM ("
                f"SELECT {self.person}::VARCHAR AS person, {self.text} AS text, count(*) AS n "
                f"FROM {self.protected.sql} GROUP BY ALL) ORDER BY person, text"
            ).to_arrow_table()
            named = cursor.sql(
                f"SELECT person, {self._clean('text')} AS clean, {_words('text')} AS words FROM {self.background} "
                "ORDER BY person, text"
            ).to_arrow_table()
            if self.masker is not None:
                masks = self.masker.masked(cursor, self.background)
                cursor.register("_sdc_masks", masks)
                copies = cursor.sql(
                    f"SELECT person, {self._clean('masked')} AS clean, {_words('masked')} AS words "
                    f"FROM {self.background} JOIN _sdc_masks USING (text) ORDER BY person, text"
                ).to_arrow_table()
                cursor.unregister("_sdc_masks")
                named = pa.concat_tables([named, copies])
            if self.model is None or self.model.tokenizer is None:
                seen, looked = _by_words(asked, named, self.model, cursor)
            else:
                seen, looked = _by_texts(asked, named, self.model, cursor)
        return _linked(asked, named, seen, looked, self.classifier)

    def _clean(self, text: str) -> str:
        """SQL of a text as a network reads it: without masks."""
        if self.model is None or self.model.tokenizer is None:
            return "NULL::VARCHAR"
        return f"replace({_unmarked(text)}, '***', ' ')"


def _unmarked(text: str) -> str:
    return rf"regexp_replace({text}, '\[[A-Z_]+\]', ' ', 'g')"


def _words(text: str) -> str:
    return words_of(_unmarked(text))


@dataclass(frozen=True)
class _Found:
    asked: pa.Table
    persons: list[str]
    known: np.ndarray[tuple[int], np.dtype[np.bool_]]
    there: np.ndarray[tuple[int], np.dtype[np.bool_]]
    linked: Linked
    correct: np.ndarray[tuple[int], np.dtype[np.bool_]]


def _by_words(
    asked: pa.Table, named: pa.Table, model: Model | None, cursor: duckdb.DuckDBPyConnection
) -> tuple[Any, Any]:
    """Vectors of the named and of the masked documents: a number for each word, or what a file says of the words."""
    words = pa.chunked_array([*named["words"].chunks, *asked["words"].chunks], pa.list_(pa.string()))
    sizes = np.nan_to_num(
        np.concatenate([np.zeros(0), *(one.value_lengths().to_numpy(zero_copy_only=False) for one in words.chunks)])
    ).astype(np.int64)
    flat = pa.chunked_array([one.flatten() for one in words.chunks], pa.string())
    codes = flat.dictionary_encode().unify_dictionaries()
    code = np.concatenate([np.zeros(0, np.int64), *(one.indices.to_numpy() for one in codes.chunks)]).astype(np.int64)
    size = int(code.max()) + 1 if len(code) else 1
    every = counts(code, sizes, size)
    before, after = every[: named.num_rows], every[named.num_rows :]
    idf = weights(before)
    if model is not None:
        known = codes.chunk(0).dictionary if codes.num_chunks else pa.array([""])
        of_words = model.of_words(cursor, known) * idf[:, None]
        return unit(before @ of_words), unit(after @ of_words)
    idf[np.bincount(before.indices, minlength=size) == 0] = 0.0  # words that no named document has tell nothing
    after.data = np.where(idf[after.indices] > 0, after.data, 0.0)
    after.eliminate_zeros()
    return vectors(before, idf), vectors(after, idf)


def _by_texts(asked: pa.Table, named: pa.Table, model: Model, cursor: duckdb.DuckDBPyConnection) -> tuple[Any, Any]:
    """The same by a network; it reads each text once, and none without a word."""
    clean = pa.chunked_array([*named["clean"].chunks, *asked["clean"].chunks], pa.string())
    words = pa.chunked_array([*named["words"].chunks, *asked["words"].chunks], pa.list_(pa.string()))
    there = np.asarray(pc.fill_null(pc.greater(pc.list_value_length(words), 0), False).to_numpy(), dtype=bool)
    different = pc.unique(clean.filter(pa.array(there)))
    made = model.of_texts(cursor, different.to_pylist(), shown_checkpoint())
    every = np.zeros((len(there), made.shape[1]), np.float32)
    every[there] = made[_places(clean.filter(pa.array(there)), different)]
    return every[: named.num_rows], every[named.num_rows :]


def _linked(asked: pa.Table, named: pa.Table, seen: Any, looked: Any, classifier: str) -> _Found:
    persons = pc.unique(named["person"])
    persons = persons.take(pc.sort_indices(persons))
    owner = _places(named["person"], persons)
    truth = _places(asked["person"], persons)
    if classifier == "linear":
        if len(persons) > _MOST_CLASSES:
            raise SDCError(f"classifier := 'linear' is for {_MOST_CLASSES} persons at most: take 'nn'")
        if len(persons) < 2:
            raise SDCError("classifier := 'linear' needs documents of two persons at least: take 'nn'")
        linked = likeliest(looked, seen, owner, len(persons), truth)
    else:
        near = closest if isinstance(looked, np.ndarray) else nearest
        linked = near(looked, seen, owner, len(persons), truth, shown_checkpoint())
    known = asked["words"].is_valid().to_numpy().astype(bool)
    correct = known & (linked.person >= 0) & (linked.person == truth)
    return _Found(asked, persons.to_pylist(), known, truth >= 0, linked, correct)


def _places(values: pa.ChunkedArray, among: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where values stand in a list; -1: nowhere."""
    found = pc.fill_null(pc.index_in(values, among), -1)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def plan_text_risk_documents(
    session: Session, protected: str | None, background: str | None, person: str | None, text: str | None,
    classifier: str | None, rules: list[str] | None, gazetteer: str | None, model: str | None,
) -> Rows:  # fmt: skip
    """``sdc_text_risk_documents``: each document, and whom the attacker names."""
    attack = _Attack.read(session, protected, background, person, text, classifier, rules, gazetteer, model)
    refuse_taken(attack.protected.columns, tuple(_DOCUMENTS))

    def make() -> pa.Table:
        found = attack.run(session)
        told, named = found.linked, found.linked.person >= 0
        names = pa.array([*found.persons, None], pa.string()).take(
            pa.array(np.where(named, told.person, len(found.persons)))
        )
        ranked = found.known & (told.rank > 0)
        return pa.table(
            {
                "person": found.asked["person"], "text": found.asked["text"], "predicted": names,
                "score": pa.array(told.score, mask=~found.known), "margin": pa.array(told.margin, mask=~found.known),
                "true_rank": pa.array(told.rank, mask=~ranked),
                "in_background": pa.array(found.there, mask=~found.known),
                "reidentified": pa.array(found.correct, mask=~found.known),
            }
        )  # fmt: skip

    shown = ", ".join(f"m.{name}" for name in _DOCUMENTS)
    return Rows(
        make,
        f"SELECT r.*, {shown} FROM {attack.protected.sql} r LEFT JOIN {{rows}} m "
        f"ON r.{attack.person}::VARCHAR IS NOT DISTINCT FROM m.person AND r.{attack.text} IS NOT DISTINCT FROM m.text",
    )


def plan_text_risk(
    session: Session, protected: str | None, background: str | None, person: str | None, text: str | None,
    classifier: str | None, rules: list[str] | None, gazetteer: str | None, model: str | None,
) -> Rows:  # fmt: skip
    """``sdc_text_risk``: the share of documents whose person is found."""
    attack = _Attack.read(session, protected, background, person, text, classifier, rules, gazetteer, model)

    def make() -> pa.Table:
        found = attack.run(session)
        number = found.asked["n"].to_numpy()
        n, persons = int(number[found.known].sum()), len(found.persons)
        correct = int(number[found.correct].sum())
        first = found.known & (found.linked.rank > 0) & (found.linked.rank <= _FIRST)
        row: dict[str, object] = {
            "n": n, "n_null": int(number[~found.known].sum()), "reidentified": correct,
            "random_guess": 1 / persons if persons else None,
            "warning": "; ".join(
                [
                    *(["fewer than two persons to choose from"] if persons < 2 else []),
                    _LOWER_BOUND if attack.model is None else _LOWER_BOUND_OF_MODEL,
                ]
            ),
        }  # fmt: skip
        if n:
            low, high = wilson(correct, n)
            row |= {
                "risk": correct / n, "ci_low": low, "ci_high": high, "top_5": int(number[first].sum()) / n,
                "cap": int(number[found.known & found.there].sum()) / n,
            }  # fmt: skip
        return table_of([row], _SUMMARY)

    return Rows(make)


PLANNERS = (
    planner(plan_text_risk_documents, {"person": "VARCHAR", "text": "VARCHAR", **_DOCUMENTS}),
    planner(plan_text_risk),
)
