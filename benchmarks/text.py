"""Whom masked texts are about: seconds and CPU seconds by SQL, and memory. Nothing fails because of a clock.

Documents of 100 words from a vocabulary of 50,000, frequent ones as in language. The goal of 10,000 released against
100,000 background documents is 3 minutes and 2 GiB.

    python benchmarks/text.py            10,000 against 100,000
    python benchmarks/text.py --quick    a tenth of both

The vectors of words are 300 random numbers for each of the vocabulary; the network is one layer that looks up 384 for
each word (where `onnx`, which makes it, is installed): what is measured is all but a network's own time.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import sdcduck

WORDS, VOCABULARY = 100, 50_000
STATEMENTS = {
    "mask by list and rules": "CREATE OR REPLACE TABLE masked AS "
    "FROM sdc_text_mask('background', rules := ['email', 'date'], "
    "gazetteer := '(SELECT ''w'' || i FROM range(20, 400) r(i))')",
    "risk": "FROM sdc_text_risk('released', 'background')",
    "risk by vectors of words": "FROM sdc_text_risk('released', 'background', model := '{folder}/words.txt')",
    "risk by a network": "FROM sdc_text_risk('released', 'background', model := '{folder}')",
}


def make_texts(con: duckdb.DuckDBPyConnection, name: str, persons: int, seed: int) -> None:
    """A table of texts, one of each person; some words are the person's own."""
    chance = np.random.default_rng(seed)
    words = chance.zipf(1.3, (persons, WORDS)) % VOCABULARY
    words[:, :5] = (np.arange(persons)[:, None] * 7919 + np.arange(5) * 104_729) % VOCABULARY
    con.register("made", pa.table({"person": np.arange(persons), "words": pa.array(list(words))}))
    con.execute(
        f"CREATE OR REPLACE TABLE {name} AS SELECT person, "
        "list_aggregate(list_transform(words, lambda word: 'w' || word), 'string_agg', ' ') AS text FROM made"
    )
    con.unregister("made")


def make_models(folder: Path) -> bool:
    """Vectors of words and a network in a folder; whether there is the latter."""
    chance = np.random.default_rng(3)
    vectors = chance.normal(size=(VOCABULARY, 300)).round(4)
    lines = (f"w{word} {' '.join(map(str, vector))}\n" for word, vector in enumerate(vectors.tolist()))
    (folder / "words.txt").write_text("".join(lines), encoding="utf-8")
    if find_spec("onnx") is None or find_spec("tokenizers") is None:
        return False
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    made = Tokenizer(WordLevel({"[UNK]": 0, **{f"w{word}": word + 1 for word in range(VOCABULARY)}}, "[UNK]"))
    made.pre_tokenizer = Whitespace()
    made.save(str(folder / "tokenizer.json"))
    numbers = chance.normal(size=(VOCABULARY + 1, 384)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["numbers", "input_ids"], ["tokens"])], "made",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "t"])],
        [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["b", "t", 384])],
        [numpy_helper.from_array(numbers, "numbers")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return True


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of both")
    scale = 10 if parser.parse_args().quick else 1
    table = Table("", "seconds", "CPU seconds", title=f"{10_000 // scale:,} texts against {100_000 // scale:,}")
    with sdcduck.connect(secret="the secret of the benchmark") as con, tempfile.TemporaryDirectory() as folder:
        network = make_models(Path(folder))
        make_texts(con, "background", 100_000 // scale, 1)
        make_texts(con, "released", 10_000 // scale, 2)
        for what, statement in STATEMENTS.items():
            began, used = time.perf_counter(), time.process_time()
            if what == "risk by a network" and not network:
                continue
            con.execute(statement.format(folder=folder)).fetchall()
            table.add_row(what, f"{time.perf_counter() - began:.1f}", f"{time.process_time() - used:.1f}")
    console = Console()
    console.print(table)
    console.print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


if __name__ == "__main__":
    main()
