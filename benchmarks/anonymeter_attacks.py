"""The attacks of `attacks.py` by anonymeter, in an environment of its own: started by it, with a folder of CSV files.

Prints a line of JSON for each attack: rates of success, the risk with its interval, and seconds.

    python -m venv peer && peer/bin/pip install anonymeter==1.1.0
    python benchmarks/attacks.py --anonymeter peer/bin/python
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

NUMBERS = ("income",)


def main() -> None:
    """Attack the tables of the folder; the calls come as JSON."""
    folder, calls = Path(sys.argv[1]), json.loads(sys.argv[2])
    warnings.simplefilter("ignore")
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("original", "synthetic", "control")}
    for call in calls:
        np.random.seed(1)  # what anonymeter draws from
        start = time.perf_counter()
        try:
            figures = attack(tables, call)
        except RuntimeError as problem:  # no predicate that singles out
            figures = {"problem": str(problem)}
        figures["seconds"] = time.perf_counter() - start
        print(json.dumps(figures), flush=True)


def attack(tables: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    """Rates of one attack; the arguments are those that both programs take."""
    shared = {"ori": tables["original"], "syn": tables["synthetic"], "control": tables["control"]}
    attacks = min(call["attacks"], len(tables["control"]))
    if call["kind"] == "singling out":
        evaluator = SinglingOutEvaluator(**shared, n_attacks=attacks, n_cols=3, seed=1)
        evaluator.evaluate(mode=call["mode"])
    elif call["kind"] == "linkability":
        evaluator = LinkabilityEvaluator(
            **shared, aux_cols=tuple(call["aux"]), n_attacks=attacks, n_neighbors=call["neighbours"]
        )
        evaluator.evaluate(n_jobs=-1)
    else:
        secret = call["secret"]
        known = [name for name in tables["original"].columns if name != secret]
        evaluator = InferenceEvaluator(
            **shared, aux_cols=known, secret=secret, regression=secret in NUMBERS, n_attacks=attacks
        )
        evaluator.evaluate(n_jobs=-1)
    found, risk = evaluator.results(), evaluator.risk()
    return {
        "rates": [found.attack_rate.value, found.control_rate.value, found.baseline_rate.value],
        "risk": [risk.value, *risk.ci],
    }


if __name__ == "__main__":
    main()
