"""Texts without what names a person: planner of ``sdc_text_mask``."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sdcduck.errors import SDCError
from sdcduck.functions.declared import planner
from sdcduck.functions.jobs import reads
from sdcduck.functions.registry import Rows, Session
from sdcduck.methods.text.terms import covered
from sdcduck.quoting import identifier, literal
from sdcduck.udfs.arguments import choice, whole
from sdcduck.udfs.source import Source, source

LETTERS = r"[\p{L}\p{M}\p{N}_]"
RULES = {
    "url": r"(?i)\b(?:https?://|www\.)[^\s<>\"]+",
    "email": r"[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+",
    "iban": r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
    "card": r"\b(?:\d[ -]?){12,18}\d\b",
    "date": r"\b(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})\b",
    "phone": r"(?:\+|\b0)\d[\d /()-]{5,}\d\b",
    "year": r"\b(?:1[89]|20)\d{2}\b",
    "postcode": r"\b(?:[A-Z]{1,2}-)?\d{4,5}\b",
    "number": r"\b\d+(?:[.,]\d+)*\b",
}
"""What a rule replaces, in the order in which they are applied."""


@dataclass(frozen=True)
class Masker:
    """What is masked.

    Attributes:
        rules: names of them, in the order in which they are applied.
        terms: SQL of one column, lists of the words of a term; None: there is no list.
    """

    rules: tuple[str, ...]
    terms: str | None

    @classmethod
    def read(cls, session: Session, rules: list[str] | None, gazetteer: str | None) -> Masker:
        asked = {choice(one, "rules", RULES, each=True) for one in rules or ()}
        terms = None
        if gazetteer is not None:
            listed = source(session.cursor(), gazetteer, "gazetteer")
            terms = " UNION ALL ".join(
                f"SELECT {words_of(f'{identifier(name)}::VARCHAR')} FROM {listed.sql}" for name in listed.columns
            )
        return cls(tuple(one for one in RULES if one in asked), terms)

    def ruled(self, text: str) -> str:
        """SQL of the text after the rules."""
        for one in self.rules:
            text = f"regexp_replace({text}, {literal(RULES[one])}, '[{one.upper()}]', 'g')"
        return text

    def masked(self, cursor: duckdb.DuckDBPyConnection, texts: str) -> pa.Table:
        """Different texts, and what becomes of each: ``text``, ``masked``.

        Args:
            texts: SQL of a relation with a column ``text``.
        """
        found = cursor.sql(
            f"SELECT text, regexp_extract_all({self.ruled('text')}, '{LETTERS}+|[^{LETTERS[1:]}+') AS parts "
            f"FROM (SELECT DISTINCT text FROM {texts} WHERE text IS NOT NULL)"
        ).to_arrow_table()
        parts = found["parts"].combine_chunks()
        if isinstance(parts, pa.ChunkedArray):
            parts = pa.concat_arrays(parts.chunks) if parts.num_chunks else pa.array([], pa.list_(pa.string()))
        flat, sizes = parts.flatten(), parts.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        terms = [] if self.terms is None else [row[0] for row in cursor.sql(self.terms).fetchall() if row[0]]
        known = sorted({word for term in terms for word in term})
        number = {word: place for place, word in enumerate(known)}
        is_word = pc.match_substring_regex(flat, f"^{LETTERS}").to_numpy(zero_copy_only=False).astype(bool)
        codes = pc.index_in(pc.utf8_lower(flat), pa.array(known, flat.type)).fill_null(-1)
        words = codes.to_numpy(zero_copy_only=False).astype(np.int64)[is_word]
        document = np.repeat(np.arange(len(sizes)), sizes)[is_word]
        hidden = np.zeros(len(flat), np.bool_)
        hidden[is_word] = covered(words, document, [[number[word] for word in term] for term in terms])
        shown = pc.if_else(pa.array(hidden), pa.scalar("***", flat.type), flat)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), shown), "")
        return pa.table({"text": found["text"], "masked": joined})


def words_of(text: str) -> str:
    """SQL of the words of a text, in small letters."""
    return f"regexp_extract_all(lower({text}), '{LETTERS}+')"


def text_column(relation: Source, name: str | None, argument: str) -> str:
    """The quoted name of a column of texts."""
    found = relation.column(name, argument)
    kind = relation.type_of(str(name))
    if kind not in ("VARCHAR", '"NULL"'):
        raise SDCError(
            f"argument '{argument}' must name a column of texts: '{name}' of {relation.described} is "
            f"{kind.split('(')[0]}"
        )
    return found


def plan_text_mask(
    session: Session, text: str | None, column: str | None, rules: list[str] | None, gazetteer: str | None,
    person: str | None, min_persons: int | None,
) -> Rows:  # fmt: skip
    """``sdc_text_mask``: the records, with their text masked."""
    relation = source(session.cursor(), text, "source")
    relation.check_names(tuple(relation.columns))
    written = text_column(relation, column, "text")
    masker = Masker.read(session, rules, gazetteer)
    least = whole(min_persons, "min_persons", least=1)
    if least > 1:
        if person is None:
            raise SDCError("argument 'min_persons' needs 'person', the column that says whose text it is")
        who = relation.column(person, "person")
        rare = (
            f"SELECT [word] FROM (SELECT {who} AS person, unnest({words_of(masker.ruled(written))}) AS word "
            f"FROM {relation.sql}) GROUP BY word HAVING count(DISTINCT person) < {least}"
        )
        masker = Masker(masker.rules, rare if masker.terms is None else f"{masker.terms} UNION ALL {rare}")
    if not masker.rules and masker.terms is None:
        raise SDCError("give 'rules', a 'gazetteer' or 'min_persons': nothing would be masked")

    def make() -> pa.Table:
        with reads(session.cursor()) as cursor:
            return masker.masked(cursor, f"(SELECT {written} AS text FROM {relation.sql})")

    return Rows(
        make,
        f"SELECT r.* REPLACE (m.masked AS {written}) FROM {relation.sql} r "
        f"LEFT JOIN {{rows}} m ON r.{written} = m.text",
    )


PLANNERS = (planner(plan_text_mask, {"text": "VARCHAR", "masked": "VARCHAR"}),)
