"""The attack of `examples/sequence_attack.py`: it works without a limit, and a limit of 0.8 keeps it near guessing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sequence_attack", ROOT / "examples" / "sequence_attack.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sequence_attack"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("persons", [60, 1000])
def test_with_the_default_an_analyst_is_hardly_better_than_guessing(example: ModuleType, persons: int) -> None:
    """At most 8 points at any number of questions, on average over eight seeds, with lists of half of the categories."""
    runs = [example.attack(persons, seed, 0.8, 700) for seed in example.SEEDS]
    assert example.worst(runs) <= 0.08
    assert np.mean([run.answered[700] for run in runs]) > 0.05  # and something was answered
    assert all(run.answered[700] < 0.5 for run in runs)


def test_short_lists_are_the_better_attack_and_take_a_higher_limit(example: ModuleType) -> None:
    """Many small questions bring all persons to the limit: 0.8 leaves some 11 points then, 0.9 some 8."""
    points = {
        limit: example.worst([example.attack(60, seed, limit, 1000, "short") for seed in example.SEEDS])
        for limit in (0.8, 0.9)
    }
    assert points[0.9] <= 0.09 < points[0.8] <= 0.16


@pytest.mark.parametrize(("persons", "questions", "of_the_way"), [(60, 400, 0.7), (1000, 1000, 0.6)])
def test_without_a_limit_the_attack_works(example: ModuleType, persons: int, questions: int, of_the_way: float) -> None:
    """Most of what knowing each cell exactly would add to guessing."""
    runs = [example.attack(persons, seed, None, questions) for seed in example.SEEDS]
    gain = np.mean([run.right[questions] - run.guess for run in runs])
    assert gain > of_the_way * np.mean([run.told_all - run.guess for run in runs])
    assert gain > 0.08


def test_the_noise_has_the_law_that_the_attacker_takes(example: ModuleType) -> None:
    drawn = example.noise(np.random.default_rng(1), 200_000)
    assert set(drawn.tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert drawn.mean() == pytest.approx(0, abs=0.01)
    assert drawn.var() == pytest.approx(example.VARIANCE, abs=0.01)


def test_the_picture_and_the_table(example: ModuleType) -> None:
    found = {(60, "half", limit): [example.attack(60, seed, limit, 50) for seed in (5, 6)] for limit in (0.8, None)}
    said = example.figures(found, 50)
    assert [line.split("|")[2].strip() for line in said.splitlines()[2:]] == ["0.80", "off"]
    assert "no limit" in example.draw(found).svg
