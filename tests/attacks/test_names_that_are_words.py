"""Columns that are called as words of SQL are: one parser takes such a name for a word, and the other for the column.

Where sqlglot sees today's date, a type or a list, nobody asks whether a column may be seen. A query gives any name that it
likes to a measure, and a table has columns that are in no policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from attacked_database import LONG, Attacked
from effort import times
from fixtures_of_attacks import attacked, show
from sqlglot.dialects.dialect import Dialect

from sdcduck.guard import Guard, Refused, guard
from sdcduck.guard.allowed import FUNCTIONS, WORDS_OF_TIME
from sdcduck.quoting import identifier

OF_A_NAME = ("{}", "{} + 0", "abs({})", "{}::VARCHAR", "CASE WHEN {} > 0 THEN {} END")
OF_A_LIST = (
    "{}[1]",
    "{}[1:1]",
    "{}[1][1:12]",
    "words.{}[1]",
    "upper({}[1])",
    "CASE {}[1] WHEN '1' THEN '' ELSE {}[1] END",
)
OF_BOTH = '"{}"[1]', "({})[1]", "'{}'[1]"


TRIED = ("list", "array", "date", "text", "uuid", "json", "varchar", "bit", "l\u0131st", *sorted(WORDS_OF_TIME))
"""Of these every form."""


def _words(attacked: Attacked) -> list[str]:
    """What DuckDB, sqlglot or the guard may take for anything but a name."""
    of_sqlglot = Dialect.get_or_raise("duckdb").tokenizer_class.KEYWORDS
    known = attacked.con.execute(
        "SELECT keyword_name FROM duckdb_keywords() UNION SELECT type_name FROM duckdb_types()"
    ).fetchall()
    found = {word.lower() for (word,) in known} | {word.lower() for word in of_sqlglot} | FUNCTIONS | WORDS_OF_TIME
    return sorted(word for word in found | {"user", "rowid", *TRIED} if word.isidentifier())


def _hidden(attacked: Attacked) -> list[str]:
    """The same for the names of columns that are in no policy: a table of all takes its time."""
    of_types = attacked.con.execute("SELECT DISTINCT lower(type_name) FROM duckdb_types()").fetchall()
    return [word for word in _words(attacked) if LONG or word in TRIED or (word,) in of_types]


@pytest.fixture(scope="module")
def hidden(attacked: Attacked) -> Iterator[Guard]:
    """A table with a column for each word that is in no policy, a list of a number that is confidential."""
    columns = ", ".join(f"[income::VARCHAR] AS {identifier(word)}" for word in _hidden(attacked) if word != "region")
    attacked.con.execute(
        f"CREATE TABLE words AS SELECT person_id AS id_of_unit, record_key, region, {columns} FROM people"
    )
    attacked.con.execute("FROM sdc_protect('words', unit := 'id_of_unit', dimensions := ['region'])").fetchall()
    yield guard(attacked.con)
    attacked.con.execute("FROM sdc_unprotect('words')").fetchall()
    attacked.con.execute("DROP TABLE words")


def test_a_measure_that_is_called_as_a_word_stays_a_measure(attacked: Attacked, show: Callable[[str], None]) -> None:
    every, answered, step = _words(attacked), 0, times(3, 1)
    words = [word for place, word in enumerate(every) if word in TRIED or place % step == 0]
    for word in words:
        for form in OF_A_NAME if LONG else OF_A_NAME[:1]:
            for hidden in ("income", "person_id") if LONG else ("income",):
                got = attacked.attempt(
                    f"SELECT {form.replace('{}', word)} AS x, count(*) FROM (SELECT {hidden} AS {identifier(word)}, region "
                    "FROM people) GROUP BY 1"
                )
                answered += not isinstance(got, Refused)
                assert isinstance(got, Refused) or not attacked.leaks(got), (word, form)
    show(f"{len(words)} words as names of a measure: {answered} questions answered, none with its values")


def test_a_column_without_a_policy_that_is_called_as_a_word_is_not_seen(
    attacked: Attacked, hidden: Guard, show: Callable[[str], None]
) -> None:
    answered = []
    for word in _hidden(attacked):
        for form in (*OF_A_LIST, *OF_BOTH) if LONG or word in TRIED else OF_A_LIST[:1]:
            query = f"SELECT {form.replace('{}', word)} AS x, count(*) FROM words GROUP BY 1"
            try:
                got = hidden.sql(query).to_pylist()
            except Refused:
                continue
            answered.append(query)
            assert not attacked.leaks(got), query
    show(
        f"{len(_hidden(attacked))} words as names of a hidden column: {len(answered)} questions answered, none with its values"
    )


@pytest.mark.parametrize("word", sorted(WORDS_OF_TIME))
@pytest.mark.parametrize(
    "query",
    [
        'SELECT count(*) FROM (SELECT income AS "{}", region FROM people) WHERE {} > 40000000',
        'SELECT count(*) FILTER ({} > 40000000) FROM (SELECT income AS "{}", region FROM people)',
        'SELECT sum(CASE WHEN {} > 40000000 THEN 1 ELSE 0 END) FROM (SELECT income AS "{}", region FROM people)',
        'SELECT {} AS x, count(*) FROM (SELECT person_id AS "{}", region FROM people) GROUP BY ALL',
        'WITH c AS (SELECT income AS "{}" FROM people) SELECT DISTINCT {} FROM c',
        'SELECT count(DISTINCT {}) FROM (SELECT income AS "{}" FROM people)',
        'SELECT x, count(*) FROM (SELECT {} AS x FROM (SELECT income AS "{}" FROM people)) GROUP BY x',
        'SELECT count(*) FROM (SELECT income AS "{}", region FROM people) p JOIN regions r ON p.region = r.region AND {} > 40000000',
        'SELECT {} AS x, count(*) FROM people AS "{}" GROUP BY ALL',
        "SELECT {} AS x, count(*) FROM (SELECT COLUMNS('inc.*') AS '{}' FROM people) GROUP BY ALL",
    ],
)  # fmt: skip
def test_words_of_time_beside_a_column_of_that_name(attacked: Attacked, word: str, query: str) -> None:
    got = attacked.attempt(query.replace("{}", word))
    assert isinstance(got, Refused), got


def test_the_time_is_known_where_no_column_is_called_so(attacked: Attacked) -> None:
    for word in (*sorted(WORDS_OF_TIME - {"localtime", "current_time"}), "today()"):
        got = attacked.attempt(f"SELECT count(*) AS n FROM people WHERE d < {word}")
        assert got == attacked.attempt("SELECT count(*) AS n FROM people")


def test_a_word_of_time_may_be_a_column_that_nobody_sees(attacked: Attacked, hidden: Guard) -> None:
    with pytest.raises(Refused, match="current_date, beside a column of that name"):
        hidden.sql("SELECT count(*) FROM words WHERE DATE '2020-01-01' < current_date")
    assert hidden.sql("SELECT count(*), current_date AS d FROM words").num_rows == 1
