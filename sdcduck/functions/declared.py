"""What the comment above a SQL function declares, as DuckDB is given it: the macro, and the types behind it.

A function that a planner answers is declared once, by its comment in ``sql/``; the planner of ``sdc_x`` is ``plan_x``.
A comment without a macro stands for the one that hands all arguments on:

>>> print(macro_of(next(one for one in sql_functions() if one.name == "sdc_synth_correlations")))
CREATE OR REPLACE MACRO sdc_synth_correlations("original", "synthetic", "columns" := []) AS TABLE
    SELECT * FROM query(_sdc_with_python(
        _sdc_plan('synth_correlations', ["original"::VARCHAR, "synthetic"::VARCHAR, to_json("columns")::VARCHAR])));

What was called otherwise in an earlier release is taken by its old name, too, and the planner told so:

>>> print(macro_of(next(one for one in sql_functions() if one.name == "sdc_recon_designations")))
CREATE OR REPLACE MACRO sdc_recon_designations("links", "sensitive" := NULL, "id" := 'id', "attribute" := NULL) AS TABLE
    SELECT * FROM query(_sdc_with_python(
        _sdc_plan('recon_designations', ["links"::VARCHAR, coalesce("attribute"::VARCHAR, "sensitive"::VARCHAR),
        "id"::VARCHAR, concat_ws(' ', CASE WHEN "attribute" IS NOT NULL THEN 'attribute' ELSE NULL END)])));

``python -m sdcduck.functions.declared`` prints all that is made so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from sdcduck.functions.reference import COMMENT, SQL_FILES, SQLFunction, sql_functions
from sdcduck.functions.registry import Planner, Rows, Session, call_of_planner
from sdcduck.quoting import identifier, literal

_ALONE = re.compile(rf"{COMMENT}(?!CREATE )", re.MULTILINE)
_AS_IT_IS = ("DOUBLE", "BOOLEAN")
_LIST = re.compile(r"[A-Z]+\[\]")
_TUPLES = re.compile(r"(list of pairs|pair)\b")


def handed_on(name: str, kind: str) -> tuple[str, str]:
    """How an argument gets to a planner: SQL, and the type that the planner is given it in.

    Whole numbers come as texts, so that none loses a digit and 2.5 is refused by name; lists of names as JSON, so that
    one name may stand for a list of one; what may be of several types, or nested, as JSON, too, but for tuples, whose
    parts have no names. Bytes come as they are, and a text in their place as its characters.

    >>> handed_on("k", "INTEGER"), handed_on("domains", "STRUCT of lists"), handed_on("keys", "VARCHAR[]")
    (('"k"::VARCHAR', 'BIGINT'), ('to_json("domains")::VARCHAR', 'VARCHAR'), ('to_json("keys")::VARCHAR', 'VARCHAR[]'))
    """
    return _handed_on(identifier(name), kind)


def _handed_on(quoted: str, kind: str) -> tuple[str, str]:
    if kind in _AS_IT_IS:
        return quoted, kind
    if kind in ("BIGINT", "INTEGER"):
        return f"{quoted}::VARCHAR", "BIGINT"
    if kind == "VARCHAR" or _TUPLES.match(kind):
        return f"{quoted}::VARCHAR", "VARCHAR"
    if kind == "VARCHAR[]":
        return f"to_json({quoted})::VARCHAR", kind
    if kind == "BLOB" or _LIST.fullmatch(kind):
        return f"{quoted}::{kind}", kind
    return f"to_json({quoted})::VARCHAR", "VARCHAR"


def macro_of(function: SQLFunction) -> str:
    """The macro that hands all arguments of a table function on to its planner; one more for each of its old names."""
    new = {now: name for name, now in function.renamed}
    old = [name for name, _ in function.renamed]
    # What must be given may come by its old name, so that DuckDB lets it be left out: the planner asks for it.
    defaults = [(name, "NULL" if default is None and name in new else default) for name, default in function.parameters]
    taken = ", ".join(
        identifier(name) + ("" if default is None else f" := {default}")
        for name, default in [*defaults, *((name, "NULL") for name in old)]
    )
    given = [
        *((_given(name, kind, new), handed_on(name, kind)[1]) for name, kind in function.types),
        *(_handed_on(sql, kind) for kind, sql in _also(function).values()),
    ]
    used = [f"CASE WHEN {identifier(name)} IS NOT NULL THEN {literal(name)} ELSE NULL END" for name in old]

    def macro(name: str) -> str:
        parts = ", ".join([*used, *([literal(name)] if name != function.name else [])])
        words = f"concat_ws(' ', {parts})" if parts else "''"
        said = [(words, "VARCHAR")] if old or function.former else []
        return (
            f"CREATE OR REPLACE MACRO {name}({taken}) AS TABLE\n"
            "    SELECT * FROM query(_sdc_with_python(\n"
            f"        {call_of_planner(function.name[4:], [*given, *said])}));"
        )

    return "\n".join(map(macro, (function.name, *function.former)))


def _also(function: SQLFunction) -> dict[str, tuple[str, str]]:
    """Type and SQL of what a planner is told beside the arguments, by name."""
    return {name: (told.split(": ")[0], told.partition(": ")[2]) for name, told in function.also}


def _given(name: str, kind: str, new: Mapping[str, str]) -> str:
    here, _ = handed_on(name, kind)
    return f"coalesce({handed_on(new[name], kind)[0]}, {here})" if name in new else here


@cache
def sql_of(file: str) -> str:
    """A file of ``sql/``, with the macros that its comments alone declare."""
    text = (files("sdcduck.sql") / file).read_text(encoding="utf-8")
    known = {one.name: one for one in sql_functions()}

    def with_macro(comment: re.Match[str]) -> str:
        return f"{comment[0]}{macro_of(known[comment[0][4:].split('(')[0]])}\n"

    return _ALONE.sub(with_macro, text)


def planner(
    plan: Callable[..., str | Rows], columns: Mapping[str, str] | None = None, order: Sequence[str] = ()
) -> Planner:
    """A planner with the arguments and columns that the comment of its function declares.

    Args:
        columns: of what is computed, where the result is made of it.
        order: in which the planner takes the arguments, where that is another one; what the function does not have is
            None.
    """
    function = next(one for one in sql_functions() if one.name == f"sdc_{plan.__name__.removeprefix('plan_')}")
    types = [*function.types, *((name, kind) for name, (kind, _) in _also(function).items())]
    names = tuple(name for name, _ in types)
    arguments = tuple(handed_on(name, kind)[1] for name, kind in types)
    if columns is None:
        columns = dict(function.types_of_columns) if "Rows" in str(plan.__annotations__["return"]) else {}

    def in_order(session: Session, *given: object) -> str | Rows:
        by_name = dict(zip(names, given, strict=True))
        return plan(session, *map(by_name.get, order))

    renamed = {**dict(function.renamed), **dict.fromkeys(function.former, function.name)}
    return Planner(function.name, arguments, in_order if order else plan, columns, names, renamed)


def planners(*plans: Callable[..., str | Rows]) -> tuple[Planner, ...]:
    """The same of several."""
    return tuple(map(planner, plans))


if __name__ == "__main__":
    made = {one.name: one for one in sql_functions()}
    for name in SQL_FILES:
        for alone in _ALONE.finditer((files("sdcduck.sql") / name).read_text(encoding="utf-8")):
            print(macro_of(made[alone[0][4:].split("(")[0]]))
