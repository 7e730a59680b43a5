"""Why the guard refuses a query: a code, a reason, and what to write instead. Never a data value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from sdcduck.errors import SDCError, unknown
from sdcduck.quoting import folded

NO_RECORDS_BESIDE = (
    "a join with records or answers: ask for counts, and join these; or compare with a number that is written out"
)
REASONS = {
    "SDC001": ("not valid SQL", "Correct the statement."),
    "SDC002": ("too long or too deeply nested", "Send a shorter statement."),
    "SDC003": ("not exactly one statement", "Send one SELECT at a time."),
    "SDC004": (
        "not a query",
        "SELECT is answered, EXPLAIN, DESCRIBE, SHOW and SUMMARIZE; nothing can be changed, set or loaded.",
    ),
    "SDC005": ("a form of SQL that the guard does not know", "Write it with plain SELECT, JOIN, GROUP BY and WITH."),
    "SDC006": (
        "a text that reads in two ways",
        "Write it with brackets, with other names, or in plainer words, so that it can mean one thing only.",
    ),
    "SDC010": (
        "a function that is not on the list",
        "Use arithmetic, text, date and CASE expressions, count, sum, avg.",
    ),
    "SDC011": (
        "a PIVOT or UNPIVOT that cannot be written out",
        "Write PIVOT t ON a IN ('x', 'y') USING sum(n) GROUP BY b; or sum(n) FILTER (WHERE a = 'x') for each column.",
    ),
    "SDC012": ("COLUMNS(..), or a star, that cannot be written out", "Write the names of the columns."),
    "SDC013": (
        "a sample that is not drawn",
        "Write FROM t TABLESAMPLE 10%, or (10 ROWS), of a public table or of an answer in brackets.",
    ),
    "SDC014": (
        "an argument that a function is not given here",
        "Write zones, parts of a time, widths, lengths and patterns as constants; cast to DATE or TIMESTAMP.",
    ),
    "SDC015": ("a row, struct or field that is not shown", "Give fields names, and write column.field."),
    "SDC020": ("an unknown table", "Ask the custodian which tables are open."),
    "SDC021": ("a table function", "Only tables, views, VALUES, range and generate_series can stand after FROM."),
    "SDC022": (
        "a form of FROM or JOIN that is not answered",
        "Write FROM a JOIN b ON a.x = b.x; subqueries in brackets, with a name, and with names of columns in them.",
    ),
    "SDC030": ("an unknown column", "Only dimensions, measures and the unit are visible."),
    "SDC031": ("an ambiguous column", "Write table.column."),
    "SDC033": (
        "a join that could lose or multiply units",
        "Write JOIN, or LEFT JOIN from the unit-level table to others.",
    ),
    "SDC034": (
        "a join that is not n:1",
        "The public side must have one row for each value joined on: by equality, or by both borders of an interval.",
    ),
    "SDC035": (
        "a join of unit-level tables",
        "Join on the unit, where the custodian gave both tables one population; or join the answers.",
    ),
    "SDC040": ("unit-level rows in the result", "Ask for counts and sums: SELECT .., count(*) .. GROUP BY .."),
    "SDC041": ("a measure outside of sum and avg", "Measures are added up. Group by and filter on dimensions."),
    "SDC042": ("a column that is neither grouped nor aggregated", "Add it to GROUP BY, or aggregate it."),
    "SDC043": (
        "unit-level rows in UNION, INTERSECT or EXCEPT",
        "Aggregate each part first; or put records of other tables of the population beside them by UNION ALL.",
    ),
    "SDC044": (
        "a subquery over unit-level rows, or correlated with them",
        "Tie EXISTS by equality, to a public table or on the unit; or join two aggregated WITH queries.",
    ),
    "SDC045": ("LIMIT, DISTINCT, ORDER BY or a window over unit-level rows", "Aggregate first, then sort and cut."),
    "SDC046": (
        "a subquery that is not answered in this place",
        "Compare a column with (SELECT ..) of its type, or write column IN (SELECT ..); or join a WITH query.",
    ),
    "SDC047": (
        "a group key that is not answered",
        "Group by columns and expressions that are numbers, texts or dates, by name, and once each.",
    ),
    "SDC050": ("an aggregate that shows single units", "count, count(DISTINCT unit), sum and avg are answered."),
    "SDC051": (
        "DISTINCT in an aggregate",
        "Only count(DISTINCT unit) and count(DISTINCT dimension) are answered.",
    ),
    "SDC052": (
        "an aggregate that this table's method does not answer",
        "Ask for counts; most methods answer sum and avg of measures, too.",
    ),
    "SDC060": ("a table that changed since it was declared", "The custodian has to look at it (sdc_protect)."),
    "SDC061": (
        "a question of which it is not known that another engine gives the same numbers",
        "Of records on an engine counts, sums and means of measures are answered: SELECT .., sum(x) FROM t WHERE .. "
        "GROUP BY .., with other tables joined behind t.",
    ),
    "SDC070": (
        "too much would be known of few units, with all that was answered before",
        "What was answered before is answered again, and so is what adds nothing to it; else ask for larger groups, of "
        "fewer columns at a time.",
    ),
    "SDC071": (
        "a question of which it is not known what it adds to earlier answers",
        "Of this table counts are answered, by its dimensions: SELECT .., count(*) .. WHERE .. GROUP BY ..",
    ),
    "SDC072": (
        "what was answered before cannot be looked up or written down",
        "No question about this table is answered until it can; tell the custodian.",
    ),
    "SDC073": (
        "as many questions as a login may ask in a day",
        "Ask again on the next day; SHOW sdc_questions says how many are left.",
    ),
    "SDC075": (
        "a plan that does not go on",
        "A step is opened by its own trace and text, after the one before it was answered; what was aborted stays so.",
    ),
    "SDC076": (
        "a file of plans that cannot be read or written",
        "No step is opened until it can; tell the custodian. The step may be revealed once more.",
    ),
    "SDC077": (
        "a question that is no step of a plan",
        "Questions are asked by plan here: seal them with sdc_plan_seal, then sdc_plan_open and sdc_plan_reveal.",
    ),
    "SDC080": (
        "the budget of this table is spent",
        "What was answered before is answered again, also sorted, cut or worked out in another way.",
    ),
    "SDC081": (
        "a question that is not answered with differential privacy yet",
        "Of one table counts, sums, means and quantiles are answered: SELECT .., count(*) FROM one table WHERE ..",
    ),
    "SDC082": (
        "what questions cost cannot be looked up or written down",
        "No question about this table is answered until it can; tell the custodian.",
    ),
    "SDC090": ("a failure while the query ran", "Check types and formats; the engine's message may hold data."),
    "SDC091": ("a query that runs too long", "Ask for less at a time."),
    "SDC092": ("an audit log that cannot be written", "No question is answered until it can; tell the custodian."),
    "SDC093": ("a result with too many rows", "Ask for less at a time, or aggregate."),
    "SDC094": ("a query that needs too much memory", "Ask for less at a time; look for joins that multiply rows."),
    "SDC095": (
        "more than one user may write into the audit log in an hour",
        "Ask in the next hour; fewer questions, and shorter ones, take less room.",
    ),
}
"""Code: what was found, what to do."""


class Refused(SDCError):
    """A query that is not answered.

    Attributes:
        code: one of `REASONS`.
        detail: what it was about; text of the query, never data.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        self.code, self.detail = code, detail
        reason, advice = REASONS[code]
        super().__init__(f"{code}: {reason}{f' ({detail})' if detail else ''}. {advice}")


def unknown_column(name: str, visible: Iterable[str]) -> Refused:
    """The refusal of a column that does not exist, with the nearest of those that whoever asks may see.

    >>> str(unknown_column("regoin", ["region", "age"])).split(". ")[0]
    "SDC030: an unknown column ('regoin'; did you mean 'region'?)"
    """
    others = {one for one in visible if folded(one) != folded(name)}  # columns without a name are called so by now
    near = difflib.get_close_matches(folded(name), sorted(others), n=1)
    return Refused("SDC030", f"'{name}'; did you mean '{near[0]}'?" if near else name)


def unknown_relation(name: str, visible: Iterable[str]) -> Refused:
    """The refusal of a relation that does not exist, with those that there are.

    >>> str(unknown_relation("peple", ["people", "regions"])).split(". ")[0]
    "SDC020: an unknown table ('peple'; did you mean 'people'?)"
    """
    hint = str(unknown("table", name, visible)).split("; ", 1)[1]
    return Refused("SDC020", f"'{name}'; {hint}")


def near_function(name: str, known: Iterable[str]) -> str:
    """What a function that is on no list may have been meant to be, behind its name; empty: nothing is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.75)
    return f"; did you mean '{near[0]}'?" if near else ""


def refuse_own_name(name: str) -> None:
    """Refuse names that the guard gives to what protection needs, wherever an analyst's name is made.

    Raises:
        Refused: a name that begins like these.
    """
    if folded(name).startswith("_sdc"):
        raise Refused("SDC005", "names that begin with _sdc")
