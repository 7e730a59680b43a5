"""Models of the attacker, read from files of this machine by DuckDB, so that what a connection may read holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from sdcduck.errors import SDCError
from sdcduck.methods.text.models import Floats32, Network, is_there
from sdcduck.quoting import literal

_WORDS = (".txt", ".vec", ".txt.gz", ".vec.gz")
_NETWORKS = ("model.onnx", "onnx/model.onnx")


@dataclass(frozen=True)
class Model:
    """Where a model is.

    Attributes:
        path: of the file of vectors of words, or of the network.
        tokenizer: path of what cuts texts for the network; None: it is a file of vectors of words.
    """

    path: str
    tokenizer: str | None

    @classmethod
    def read(cls, cursor: duckdb.DuckDBPyConnection, given: str) -> Model:
        """What is at a path; only looked for, not loaded."""
        if "://" in given:
            raise SDCError("argument 'model' must be a path of this machine: nothing is looked up on a network")
        if given.lower().endswith(_WORDS):
            if _found(cursor, given):
                return cls(given, None)
            raise SDCError(f"argument 'model': there is no file '{given}'")
        folder = given.rstrip("/")
        tokenizer = f"{folder}/tokenizer.json"
        network = next((f"{folder}/{name}" for name in _NETWORKS if _found(cursor, f"{folder}/{name}")), None)
        if network is None or not _found(cursor, tokenizer):
            raise SDCError(
                "argument 'model' must be a folder with model.onnx (or onnx/model.onnx) and tokenizer.json, or a file "
                f"of vectors of words that ends with .txt or .vec: '{given}' is neither"
            )
        if not is_there():
            raise SDCError("a network needs the packages 'onnxruntime' and 'tokenizers': pip install 'sdcduck[text]'")
        return cls(network, tokenizer)

    def of_words(self, cursor: duckdb.DuckDBPyConnection, words: pa.Array) -> Floats32:
        """Vectors of words, zeros for one that the file has not.

        A line is a word and its numbers, parted by spaces or tabs, as GloVe, word2vec and fastText write them; a first
        line may say how many words and numbers there are. A word in small letters comes before the same in others, and
        the upper of two lines before the lower.
        """
        lines = (
            "(SELECT rtrim(replace(line, chr(9), ' ')) AS line, row_number() OVER () AS place "
            f"FROM read_csv({literal(self.path)}, columns = {{'line': 'VARCHAR'}}, header = false, "
            "auto_detect = false, delim = chr(1), quote = '', escape = '', nullstr = ''))"
        )
        begin = _read(cursor, f"SELECT line FROM {lines} ORDER BY place LIMIT 1", self.path)["line"].to_pylist()
        first = (begin[0] or "").split(" ") if begin else []
        size = int(first[1]) if len(first) == 2 and first[1].isdigit() else len(first) - 1
        if not 1 <= size <= 100_000:
            raise SDCError(f"argument 'model': the first line of '{self.path}' is no word with its numbers")
        cursor.register("_sdc_words", pa.table({"word": words, "number": np.arange(len(words))}))
        try:
            found = _read(
                cursor,
                f"SELECT number, TRY_CAST(parts AS FLOAT[]) AS vector FROM (SELECT number, arg_min(parts[-{size}:], "
                "(lower(parts[1]) <> parts[1], place)) AS parts FROM (SELECT w.number, l.place, "
                f"string_split(l.line, ' ') AS parts FROM {lines} l "
                "JOIN _sdc_words w ON w.word = lower(split_part(l.line, ' ', 1))) "
                f"WHERE len(parts) = {size + 1} GROUP BY number)",
                self.path,
            )
        finally:
            cursor.unregister("_sdc_words")
        vectors = found["vector"].combine_chunks()
        numbers = vectors.flatten() if isinstance(vectors, pa.Array) else pa.array([], pa.float32())
        if len(numbers) != size * found.num_rows or numbers.null_count or not np.isfinite(numbers).all():
            raise SDCError(f"argument 'model': a line of '{self.path}' holds what is no finite number")
        made = np.zeros((len(words), size), np.float32)
        made[found["number"].to_numpy()] = numbers.to_numpy().reshape(-1, size)
        return made

    def of_texts(
        self, cursor: duckdb.DuckDBPyConnection, texts: list[str], check: Callable[[int, int], None]
    ) -> Floats32:
        """Vectors of different texts by a network, each of length 1."""
        parts = [
            _read(cursor, f"SELECT content FROM {reader}({literal(path)})", path)["content"][0].as_py()
            for reader, path in (("read_blob", self.path), ("read_text", str(self.tokenizer)))
        ]
        try:
            return Network(*parts).encoded(texts, check)
        except ValueError as wrong:
            raise SDCError(f"argument 'model': {wrong}") from wrong


def _found(cursor: duckdb.DuckDBPyConnection, path: str) -> bool:
    return bool(_read(cursor, f"SELECT file FROM glob({literal(path)})", path).num_rows)


def _read(cursor: duckdb.DuckDBPyConnection, statement: str, path: str) -> pa.Table:
    try:
        return cursor.sql(statement).to_arrow_table()
    except (duckdb.IOException, duckdb.PermissionException, duckdb.InvalidInputException) as wrong:
        raise SDCError(f"argument 'model': '{path}' cannot be read: {str(wrong).splitlines()[0]}") from wrong
