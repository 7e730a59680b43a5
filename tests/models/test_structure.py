"""What a saved model gives away: files that skops 0.16 wrote of models of iris, and what somebody would make of them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from sdcduck.errors import SDCError
from sdcduck.methods.models.saved import Saved
from sdcduck.methods.models.structure import findings

FILES = Path(__file__).resolve().parents[1] / "data/models"
CHECKED = {
    "tree": [("smallest leaf", 2, "fail", "threshold"), ("leaves of one class", 4, "fail", "class disclosure")],
    "safe_tree": [("smallest leaf", 43, "pass", None), ("leaves of one class", 0, "pass", None)],
    "forest": [("smallest leaf", 12, "pass", None), ("leaves of one class", 3, "fail", "class disclosure")],
    "neighbours": [("records", 150, "fail", "carries records")],
    "support_vectors": [("class", None, "pass", None), ("class", None, "pass", None), ("records", 51, "fail", "carries records")],
    # Three classes of four coefficients and a constant.
    "logistic": [("class", None, "pass", None), ("class", None, "pass", None), ("degrees of freedom", 135, "pass", None)],
    # Of three classes four means, four variances and a share.
    "bayes": [("smallest class", 50, "pass", None), ("degrees of freedom", 123, "pass", None)],
}  # fmt: skip
CALL = "SELECT measure, value, status, why FROM sdc_check_model('{}', records := 150) WHERE class NOT IN ('KDTree', 'EuclideanDistance64')"


@pytest.mark.parametrize("name", CHECKED)
def test_models_of_iris(con: duckdb.DuckDBPyConnection, name: str) -> None:
    assert con.execute(CALL.format(FILES / f"{name}.skops")).fetchall() == CHECKED[name]


def test_what_is_in_the_file_is_what_scikit_learn_fits() -> None:
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    data, target = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(data, target).tree_
    saved = Saved((FILES / "tree.skops").read_bytes())
    nodes = saved.array(saved.model.held["tree_"].held["nodes"])
    assert nodes is not None
    assert nodes["n_node_samples"].tolist() == tree.n_node_samples.tolist()
    leaf = tree.children_left < 0
    assert tree.n_node_samples[leaf].min() == CHECKED["tree"][0][1]
    assert ((tree.value[leaf, 0] > 0).sum(axis=1) == 1).sum() == CHECKED["tree"][1][1]


def test_degrees_of_freedom_need_to_know_the_records(con: duckdb.DuckDBPyConnection) -> None:
    call = f"SELECT value, status, why FROM sdc_check_model('{FILES}/logistic.skops', records := {{}}) WHERE measure = 'degrees of freedom'"
    assert con.execute(call.format("NULL")).fetchall() == [(None, "review", "say how many records were fitted")]
    assert con.execute(call.format(25)).fetchall() == [(10, "pass", None)]
    assert con.execute(call.format(24)).fetchall() == [(9, "fail", "degrees of freedom")]
    # How many there were is in a naive Bayes.
    call = f"SELECT measure, value, status FROM sdc_check_model('{FILES}/bayes.skops', threshold := 51)"
    assert con.execute(call).fetchall() == [("smallest class", 50, "fail"), ("degrees of freedom", 123, "pass")]


def test_the_file_is_known_by_its_hash(con: duckdb.DuckDBPyConnection) -> None:
    import hashlib

    rows = con.execute(f"SELECT DISTINCT sha256 FROM sdc_check_model('{FILES}/tree.skops')").fetchall()
    assert rows == [(hashlib.sha256((FILES / "tree.skops").read_bytes()).hexdigest(),)]


# --- files that somebody made ----------------------------------------------------------------------------------------


def changed(name: str, change: Callable[[dict[str, Any]], object], more: dict[str, bytes] | None = None) -> bytes:
    """A file with its schema changed, and with more files in it."""
    content = io.BytesIO()
    with zipfile.ZipFile(FILES / f"{name}.skops") as old, zipfile.ZipFile(content, "w") as new:
        schema = json.loads(old.read("schema.json"))
        change(schema)
        for info in old.infolist():
            new.writestr(info.filename, json.dumps(schema) if info.filename == "schema.json" else old.read(info))
        for path, data in (more or {}).items():
            new.writestr(path, data)
    return content.getvalue()


def reasons(content: bytes) -> set[tuple[str, str | None]]:
    return {(one.status, one.why) for one in findings(Saved(content), 150, 10, 10)}


def an_array(values: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


def held(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["content"]["content"]
    return found


RECORDS = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy", "file": "r.npy"}


def test_a_tree_that_passes() -> None:
    assert reasons((FILES / "safe_tree.skops").read_bytes()) == {("pass", None)}
    assert reasons(changed("safe_tree", lambda schema: None)) == {("pass", None)}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda schema: held(schema).update(notes=RECORDS), "holds notes besides"),
        (lambda schema: held(schema).update(classes_=RECORDS), "holds long arrays besides"),
        (lambda schema: held(schema)["tree_"].update({"__class__": "Other"}), "not fitted"),
        (lambda schema: held(schema).pop("tree_"), "not fitted"),
        (lambda schema: held(schema)["criterion"].update(content="x" * 5000), "holds long texts"),
        (lambda schema: schema.update({"__class__": "Whatever"}), "not on the list of models: somebody has to look at it"),
        (lambda schema: schema.update({"__module__": "mine"}), "not on the list of models: somebody has to look at it"),
        (lambda schema: held(schema)["tree_"]["content"]["content"]["nodes"].update(file="r.npy"), "trees that cannot be read"),
        (lambda schema: held(schema).update(estimator={"__class__": "system", "__module__": "os", "__loader__": "ObjectNode", "content": None}),
            "not on the list of models: somebody has to look at it"),
    ],
)  # fmt: skip
def test_what_is_not_known_never_passes(change: Callable[[dict[str, Any]], object], why: str) -> None:
    found = reasons(changed("safe_tree", change, {"r.npy": an_array(np.zeros((10_001, 1)))}))
    assert ("review", why) in found
    assert found != {("pass", None)}


def test_files_that_are_not_used() -> None:
    found = reasons(changed("safe_tree", lambda schema: None, {"people.csv": b"name,income"}))
    assert ("review", "files that the model does not use") in found


def test_records_under_any_model() -> None:
    found = reasons(
        changed("safe_tree", lambda schema: held(schema).update(_fit_X=RECORDS), {"r.npy": an_array(np.zeros((7, 2)))})
    )
    assert ("fail", "carries records") in found


def test_objects_in_arrays_are_not_made() -> None:
    import pickle

    class Loud:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("it was unpickled",))

    content = io.BytesIO()
    content.write(an_array(np.zeros(1)))
    evil = io.BytesIO()
    np.lib.format.write_array_header_1_0(evil, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    evil.write(pickle.dumps([Loud()]))
    found = reasons(
        changed(
            "safe_tree",
            lambda schema: held(schema)["tree_"]["content"]["content"]["nodes"].update(file="r.npy"),
            {"r.npy": evil.getvalue()},
        )
    )
    assert ("review", "trees that cannot be read") in found


@pytest.mark.parametrize(
    "content",
    [
        b"", b"no archive", b"\x80\x04K\x01.",
        changed("tree", lambda schema: schema.pop("__loader__")),
        changed("tree", lambda schema: held(schema).update(x={})),
    ],
)  # fmt: skip
def test_no_models(content: bytes) -> None:
    with pytest.raises(SDCError, match="no model saved with skops"):
        Saved(content)


def test_an_archive_without_a_schema_and_one_too_deep() -> None:
    for schema in (None, "[" * 100_000, '{"__class__": 1}', "[]"):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as new:
            new.writestr("a.npy" if schema is None else "schema.json", schema or b"")
        with pytest.raises(SDCError, match="no model saved with skops"):
            Saved(content.getvalue())


def test_models_of_skops_itself() -> None:
    """Whatever skops is installed writes files that are read."""
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    from sklearn.datasets import load_iris
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import Ridge

    data, target = load_iris(return_X_y=True)
    assert reasons(skops.dumps(Ridge().fit(data, target))) == {("pass", None)}
    found = reasons(skops.dumps(GradientBoostingClassifier(n_estimators=2).fit(data, target)))
    assert {("fail", "threshold"), ("fail", "class disclosure")} <= found


# --- records instead of a file, and the record of outputs ------------------------------------------------------------


def test_records_with_their_leaves(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE fitted AS SELECT i // 12 AS leaf, CASE WHEN i < 12 THEN 'a' WHEN i % 3 = 0 THEN 'b' END AS y FROM range(47) r(i)"
    )
    call = "SELECT measure, value, status, why FROM sdc_check_model(source := 'fitted', leaf := ['leaf']{})"
    assert con.execute(call.format(", outcome := 'y'")).fetchall() == [
        ("smallest leaf", 11, "pass", None), ("leaves of one class", 1, "fail", "class disclosure"),
    ]  # fmt: skip
    assert con.execute(call.format("")).fetchall()[1][2:] == ("review", "say what was predicted (argument 'outcome')")
    assert con.execute(call.format(", threshold := 12")).fetchall()[0][1:] == (11, "fail", "threshold")


def submitted(con: duckdb.DuckDBPyConnection, call: str) -> tuple[Any, ...]:
    con.execute(f"FROM sdc_check_submit('model', '(FROM sdc_check_model({call}))', requested_by := 'ann')").fetchall()
    found = con.execute("SELECT status, why, releasable FROM sdc_outputs()").fetchone()
    assert found is not None
    return found


def test_the_record_of_outputs(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE fitted AS SELECT i % 2 AS leaf, i % 3 AS y FROM range(40) r(i)")
    assert submitted(con, f"''{FILES}/safe_tree.skops''") == ("pass", None, True)
    assert submitted(con, f"''{FILES}/neighbours.skops''")[::2] == ("fail", False)
    lax = submitted(con, f"''{FILES}/safe_tree.skops'', threshold := 5")
    assert lax[::2] == ("review", False)
    assert "threshold is not 10 or more" in lax[1]
    # How many records there were, and which leaf is whose, the researcher says.
    claimed = submitted(con, f"''{FILES}/logistic.skops'', records := 150")
    assert claimed[::2] == ("review", False)
    assert "how many were fitted is for somebody to see" in claimed[1]
    leaves = submitted(con, "source := ''fitted'', leaf := [''leaf''], outcome := ''y''")
    assert leaves[::2] == ("review", False)
    assert "that these are the leaves of the model" in leaves[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give either 'path'"),
        ("'x.skops', source := 'people'", "give either 'path'"),
        ("'nowhere.skops'", "there is no file"),
        ("'x.skops', leaf := ['a']", "'leaf' goes with 'source'"),
        ("source := 'people'", "'leaf' must name the columns"),
        ("source := 'people', leaf := ['b']", "unknown column 'b'"),
        ("source := 'people', leaf := ['a'], outcome := 'b'", "unknown column 'b'"),
        ("source := '(FROM people WHERE a < 0)', leaf := ['a']", "'source' has no records"),
        ("'x.skops', threshold := 1", "'threshold' must be a whole number of at least 2"),
        ("'x.skops', min_df := 1", "'min_df' must be a whole number of at least 2"),
        ("'x.skops', records := 0", "'records' must be a whole number"),
        ("'x.skops', records := 2.5", "'records' must be a whole number"),
    ],
)
def test_wrong_arguments(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    lasting.execute("CREATE OR REPLACE TABLE people AS SELECT i AS a FROM range(5) r(i)")
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM sdc_check_model({arguments})").fetchall()
