"""The audit of suppression on a few publications (``make guard-suppression`` asks more), and that it finds what leaks."""

from __future__ import annotations

from attacked_database import LONG
from effort import times
from fixtures_of_attacks import show
from suppression_audit import Found, audit, publication


def test_everything_answered_together_discloses_nothing(show) -> None:  # type: ignore[no-untyped-def]
    found = Found()
    for seed in range(10 if LONG else times(2, 3)):
        audit(publication(seed), seed, 10_000 if LONG else times(500, 700), found)
    show(
        f"suppression: {found.shown} numbers shown, {found.withheld} withheld; of {found.suppressed} suppressed cells "
        f"{found.derivable} follow by equations, {found.bounded} by bounds"
    )
    assert found.wrong == []
    assert found.suppressed > 20
    assert found.shown > 200 < found.withheld
    assert found.derivable == found.bounded == 0


def test_the_audit_finds_a_leak() -> None:
    """Answers that protect nothing: each suppressed cell follows."""
    found = Found()
    leaking = publication(0)
    leaking.con.execute(
        f"FROM sdc_protect('firms', unit := 'firm', dimensions := {list(leaking.dimensions)}, "
        "measures := ['turnover', 'staff'], method := 'threshold', min_units := 1)"
    ).fetchall()
    audit(leaking, 0, 500, found)
    assert found.wrong
    assert found.derivable > 0 < found.bounded
