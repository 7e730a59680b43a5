"""The attack with a model of the attacker: vectors of words by hand, networks that are made here, and bad files."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import sdcduck

BACKGROUND = [("P1", "pilot rome"), ("P2", "nurse rome"), ("P3", "sailor oslo")]
RELEASED = [("P1", "an aviator"), ("P2", "medic [CITY] ***"), ("P3", "skipper"), ("P3", "")]
VECTORS = {
    "pilot": (1.0, 0.0, 0.0), "aviator": (0.9, 0.1, 0.0), "nurse": (0.0, 1.0, 0.0), "medic": (0.2, 0.8, 0.0),
    "sailor": (0.0, 0.0, 1.0), "skipper": (0.1, 0.0, 0.9), "rome": (0.3, 0.3, 0.3),
}  # fmt: skip


def store(con: duckdb.DuckDBPyConnection, name: str, rows: list[tuple[str, str]]) -> None:
    con.execute(f"CREATE OR REPLACE TABLE {name}(person VARCHAR, text VARCHAR)")
    con.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)


def told(con: duckdb.DuckDBPyConnection, path: Path, more: str = "") -> dict[str, tuple[Any, ...]]:
    rows = con.execute(
        f"SELECT text, predicted, score, margin, true_rank FROM sdc_text_risk_documents('released', 'background', model := '{path}'{more})"
    ).fetchall()
    return {row[0]: row[1:] for row in rows}


@pytest.fixture
def texts(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    store(lasting, "background", BACKGROUND)
    store(lasting, "released", RELEASED)
    return lasting


def written(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def lines() -> list[str]:
    return [" ".join([word, *map(str, vector)]) for word, vector in VECTORS.items()]


def test_words_that_mean_the_same(texts: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """By counts nobody is found, by vectors everybody: sums of vectors, weighted by ln((1 + n) / (1 + df)) + 1."""
    assert texts.execute("SELECT risk FROM sdc_text_risk('released', 'background')").fetchall() == [(0,)]
    path = written(tmp_path, "words.txt", lines())
    asked = f"FROM sdc_text_risk('released', 'background', model := '{path}')"
    assert texts.execute(f"SELECT n, risk, top_5, warning {asked}").fetchall() == [
        (4, 0.75, 0.75, "a lower bound: an attacker with a better model may find more")
    ]
    once, twice = np.log(4 / 2) + 1, np.log(4 / 3) + 1
    known = np.array([
        np.array(VECTORS["pilot"]) * once + np.array(VECTORS["rome"]) * twice,
        np.array(VECTORS["nurse"]) * once + np.array(VECTORS["rome"]) * twice,
        VECTORS["sailor"],  # nothing is said of oslo
    ])  # fmt: skip
    known /= np.linalg.norm(known, axis=1, keepdims=True)
    found = told(texts, path)
    for text, word, person in (
        ("an aviator", "aviator", 0),
        ("medic [CITY] ***", "medic", 1),
        ("skipper", "skipper", 2),
    ):
        cosines = known @ (np.array(VECTORS[word]) / np.linalg.norm(VECTORS[word]))
        best, second = sorted(cosines)[:0:-1]
        assert found[text] == (
            f"P{person + 1}", pytest.approx(best, abs=1e-6), pytest.approx(best - second, abs=1e-6), 1
        )  # fmt: skip
    assert found[""] == (None, 0, 0, None)
    assert told(texts, path, ", classifier := 'linear'")["an aviator"][0] == "P1"


def test_forms_of_the_file(texts: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    wanted = told(texts, written(tmp_path, "words.txt", lines()))
    assert (
        told(texts, written(tmp_path, "counted.vec", [f"{len(VECTORS)} 3", *(f"{one} " for one in lines())])) == wanted
    )
    assert told(texts, written(tmp_path, "tabs.txt", [one.replace(" ", "\t") for one in lines()])) == wanted
    # In capitals only, in both (the small letters count), twice (the first counts), with a space in it, an empty line.
    capitals = [lines()[0].capitalize(), "Rome 9 9 -9", "NURSE 5 5 5", *lines()[1:], "medic 7 7 7", "rome at 1 2 3", ""]
    assert told(texts, written(tmp_path, "capitals.txt", capitals)) == wanted
    packed = tmp_path / "words.txt.gz"
    packed.write_bytes(gzip.compress("\n".join(lines()).encode()))
    assert told(texts, packed) == wanted
    assert told(texts, written(tmp_path, "other.txt", ["unheard 1 2 3"]))["an aviator"] == (None, 0, 0, None)
    # A word that no document has may hold anything.
    assert told(texts, written(tmp_path, "odd.txt", [*lines(), "unheard x nan 3"])) == wanted


def test_masks_of_the_attacker_are_looked_at_with_a_model(texts: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = written(tmp_path, "words.txt", lines())
    masked = told(texts, path, ", gazetteer := '(SELECT ''rome'' AS name)'")
    assert masked["an aviator"][1] == pytest.approx(0.9 / np.hypot(0.9, 0.1), abs=1e-6)  # with the pilot of no town
    assert masked["an aviator"][1] > told(texts, path)["an aviator"][1]


# Networks that are made here: one vector for each number of a token, and what becomes of them.


def tokenizer(words: list[str]) -> str:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    made = Tokenizer(
        WordLevel({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, **{w: i + 3 for i, w in enumerate(words)}}, "[UNK]")
    )
    made.normalizer, made.pre_tokenizer = Lowercase(), Whitespace()
    made.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    made.enable_padding(pad_id=0, pad_token="[PAD]", length=128)
    made.enable_truncation(7)
    return str(made.to_str())


def network(vectors: np.ndarray[Any, Any], kind: str) -> bytes:
    """A vector for each token (`tokens`), the mean of the text beside them (`texts`), or with an input of another name."""
    from onnx import TensorProto, checker, helper, numpy_helper

    integers = TensorProto.INT32 if kind == "small" else TensorProto.INT64
    name = "words" if kind == "foreign" else "input_ids"
    inputs = [helper.make_tensor_value_info(name, integers, ["b", "t"])]
    nodes = [helper.make_node("Gather", ["vectors", name], ["last_hidden_state"])]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "t", vectors.shape[1]])]
    weights = [numpy_helper.from_array(vectors.astype(np.float32), "vectors")]
    if kind == "texts":
        inputs += [
            helper.make_tensor_value_info(one, integers, ["b", "t"]) for one in ("attention_mask", "token_type_ids")
        ]
        weights.append(numpy_helper.from_array(np.array([2], np.int64), "last"))
        weights.append(numpy_helper.from_array(np.array([1], np.int64), "middle"))
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["floats"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["floats", "last"], ["there"]),
            helper.make_node("Mul", ["last_hidden_state", "there"], ["kept"]),
            helper.make_node("ReduceSum", ["kept", "middle"], ["sentence_embedding"], keepdims=0),
        ]
        outputs.append(helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["b", vectors.shape[1]]))
    if kind == "flat":
        outputs = [helper.make_tensor_value_info("flat", TensorProto.FLOAT, [])]
        nodes.append(helper.make_node("ReduceSum", ["last_hidden_state"], ["flat"], keepdims=0))
    graph = helper.make_graph(nodes, "made", inputs, outputs, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(made)
    return bytes(made.SerializeToString())


def folder(path: Path, kind: str = "tokens", *, under: str = "", far: float = 0.0) -> Path:
    """A model of the words of `VECTORS`; what fills up has a vector that would be seen."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    (path / under).mkdir(parents=True)
    vectors = np.array([[50.0, -50, 50], [far, far, far], [0.1, 0.2, 0.3], *VECTORS.values()])
    (path / under / "model.onnx").write_bytes(network(vectors, kind))
    (path / "tokenizer.json").write_text(tokenizer(list(VECTORS)), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["tokens", "texts", "small"])
def test_a_network(texts: duckdb.DuckDBPyConnection, tmp_path: Path, kind: str) -> None:
    path = folder(tmp_path / "model", kind, under="onnx" if kind == "small" else "")
    found = told(texts, path)
    begin = np.array([0.1, 0.2, 0.3])
    known = [begin + np.array(VECTORS["pilot"]) + VECTORS["rome"], begin + np.array(VECTORS["nurse"]) + VECTORS["rome"]]
    known = [*known, begin + np.array(VECTORS["sailor"])]
    one = begin + np.array(VECTORS["aviator"])
    cosines = [one @ other / np.linalg.norm(one) / np.linalg.norm(other) for other in known]
    assert found["an aviator"][:2] == ("P1", pytest.approx(max(cosines), abs=1e-6))
    assert (found["medic [CITY] ***"][0], found["skipper"][0], found[""]) == ("P2", "P3", (None, 0, 0, None))
    asked = f"SELECT risk FROM sdc_text_risk('released', 'background', model := '{path}/')"
    assert texts.execute(asked).fetchall() == [(0.75,)]


def test_long_texts_are_cut_in_windows(texts: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """100 tokens with the first sign, 25 shared: of 240 words 99, 99 and 90 are read, the averages weighted by tokens."""
    words = ["pilot"] * 120 + ["nurse"] * 120
    store(texts, "released", [("P1", " ".join(words)), ("P1", "pilot rome")])
    path = folder(tmp_path / "model")
    begin = np.array([0.1, 0.2, 0.3])
    every = [words[:99], words[74:173], words[148:]]
    total = sum((begin + sum((np.array(VECTORS[word]) for word in part), np.zeros(3)) for part in every), np.zeros(3))
    known = [begin + np.array(VECTORS[word]) + VECTORS["rome"] for word in ("pilot", "nurse")]
    cosines = [total @ one / np.linalg.norm(total) / np.linalg.norm(one) for one in known]
    found = told(texts, path)
    assert found[" ".join(words)][1] == pytest.approx(max(cosines), abs=1e-6)
    assert found["pilot rome"][:2] == ("P1", pytest.approx(1, abs=1e-6))


def test_texts_that_are_equal_are_a_tie(texts: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """In whatever company a network reads a text, its vector is the same; two persons of one text are equally near."""
    rows = [(f"P{number}", "pilot rome" if number % 2 else " ".join(["nurse"] * number)) for number in range(1, 90)]
    store(texts, "background", rows)
    store(texts, "released", [("P1", "pilot rome")])
    assert told(texts, folder(tmp_path / "model"))["pilot rome"][::3] == (None, 1)


def test_what_is_no_model(texts: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    def says(path: object, message: str) -> None:
        with pytest.raises(duckdb.Error, match=re.escape(message)) as raised:
            texts.execute(f"FROM sdc_text_risk('released', 'background', model := '{path}')").fetchall()
        assert "aviator" not in str(raised.value)

    says("https://example.org/model", "nothing is looked up on a network")
    says(tmp_path / "none.txt", "there is no file")
    says(tmp_path, "must be a folder with model.onnx (or onnx/model.onnx) and tokenizer.json")
    says("", "must be a folder with model.onnx")
    says(written(tmp_path, "empty.txt", []), "is no word with its numbers")
    says(written(tmp_path, "words.txt", ["pilot"]), "is no word with its numbers")
    for value in ("x", "nan", "inf", "1e400"):
        says(written(tmp_path, "bad.txt", ["rome 1 2", f"nurse 1 {value}"]), "no finite number")
    model = folder(tmp_path / "model")
    (model / "tokenizer.json").write_text("{}", encoding="utf-8")
    says(model, "tokenizer.json is no tokenizer")
    model = folder(tmp_path / "second")
    (model / "model.onnx").write_bytes(b"no network")
    says(model, "model.onnx is no network that can be run here")
    says(folder(tmp_path / "third", "foreign"), "model.onnx must take 'input_ids'")
    says(folder(tmp_path / "fourth", "flat"), "model.onnx must give a vector of each text")
    says(folder(tmp_path / "fifth", far=np.nan), "of finite numbers")
    (model / "tokenizer.json").unlink()
    says(model, "must be a folder")


def test_a_connection_that_reads_no_files_reads_no_models(tmp_path: Path) -> None:
    path = written(tmp_path, "words.txt", lines())
    with sdcduck.connect(secret="a secret of tests only") as con:
        store(con, "background", BACKGROUND)
        store(con, "released", RELEASED)
        con.execute("SET enable_external_access = false")
        with pytest.raises(duckdb.Error, match="cannot be read"):
            con.execute(f"FROM sdc_text_risk('released', 'background', model := '{path}')").fetchall()
