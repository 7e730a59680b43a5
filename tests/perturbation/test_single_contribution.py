"""One contribution has a formula of its own, which plans sooner: the same to the bit as `sdc_ckm_sum`, whatever is asked."""

from __future__ import annotations

import random

import duckdb

PTABLES = (
    ("parity_of_two", "(FROM sdc_ptable(D := 8, V := 1, kind := ''magnitudes'', icat := [1, 5, 8], type := ''even'') UNION ALL "
     "FROM sdc_ptable(D := 10, V := 2, kind := ''magnitudes'', icat := [1, 10], type := ''odd'', optim := [4, 1]))"),
    ("small", "(FROM sdc_ptable(D := 5, V := 1, kind := ''magnitudes'', step := 5, icat := [1, 3, 5], optim := [4, 1, 1]))"),
)  # fmt: skip


def test_one_contribution_is_as_in_the_general_form(con: duckdb.DuckDBPyConnection) -> None:
    for name, query in PTABLES:
        con.execute(f"FROM sdc_store_ptable('{name}', '{query}')")
    # Exact sums are no negative zeros, which adding 0 takes away here.
    con.execute(
        """CREATE TABLE cells AS SELECT i, (hash(i) % 1000000000000)::HUGEINT AS key_sum, hash(i + 1) % 3 = 0 AS sensitive,
            hash(i + 2) % 2 = 0 AS is_odd, CASE WHEN i % 9 = 0 THEN 0 ELSE round(1.006 ** (i % 2000), 2) END::DOUBLE AS t,
            CASE WHEN i % 11 = 0 THEN 0 ELSE t * (hash(i + 3) % 16001 / 1000 - 8) END::DOUBLE + 0e0 AS x
        FROM range(1500) r(i)"""
    )
    choice = random.Random(1)
    for _ in range(25):
        p = choice.choice(("default_magnitude", "parity_of_two"))
        small = choice.choice(("NULL", "NULL", "'small'"))
        fp = choice.choice(("NULL", "100", "2500.5"))
        p_large, p_small = choice.choice((("0.1", "NULL"), ("0.03", "0.3"), ("0.7", "0.7"), ("0.9", "3")))
        q, digits, mu_c = choice.choice(("2", "3.5")), choice.choice((5, 8, 12)), choice.choice(("0", "0.75"))
        sensitive = choice.choice(("sensitive", "false"))
        is_odd = "is_odd" if p == "parity_of_two" else "false"
        same_key, compat = (choice.choice(("true", "false")) for _ in range(2))
        plain, short = con.execute(
            f"""SELECT list(sdc_ckm_sum(x, [t], key_sum, ptable := '{p}', p_large := {p_large}, p_small := {p_small},
                    fp := {fp}, q := {q}, small_cells := {small}, mu_c := {mu_c}, sensitive := {sensitive},
                    is_odd := {is_odd}, same_key := {same_key}, digits := {digits}, compat := {compat}) ORDER BY i),
                list(_sdc_single_value(x, t, key_sum, '{p}', {p_large}, {p_small}, {fp}, {q}, {small}, {mu_c},
                    {sensitive}, {is_odd}, {same_key}, {digits}, {compat}) ORDER BY i)
            FROM cells"""
        ).fetchall()[0]
        assert [number.hex() for number in plain] == [number.hex() for number in short]
        assert len(set(plain)) > 1000
