"""Texts as vectors by a model that the attacker has: a file of vectors of words, or a network in the ONNX format.

Manzanares-Salor, Sánchez and Lison (2022) train a language model on the background. Here a trained one is taken as it
is: it knows that an aviator is a pilot. Long texts are cut as the paper cuts them, in windows of 100 tokens that share
25 (section 3.2), and the vectors of the windows are averaged by their tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats32 = NDArray[np.float32]

WINDOW, SHARED = 100, 25
_BATCH = 32  # windows that go through the network together
_TEXTS = 512  # texts that are cut together
_FILLED = {"input_ids", "attention_mask", "token_type_ids"}


def is_there() -> bool:
    """Whether the packages that run a network are installed."""
    return find_spec("onnxruntime") is not None and find_spec("tokenizers") is not None


def unit(made: NDArray[Any]) -> Floats32:
    """Vectors of length 1; one of zeros stays.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).round(3).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    length = np.sqrt((made.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(made, length, out=np.zeros(made.shape), where=length > 0), dtype=np.float32)


def _of_all(check: Callable[[int, int], None], before: int, total: int, done: int) -> None:
    check(before + done, total)


class Network:
    """A network that makes vectors of texts, such as the sentence encoders that are handed about.

    Args:
        model: what the ONNX file holds. It takes ``input_ids`` and may take ``attention_mask`` and ``token_type_ids``;
            it gives a vector of each text, or of each token, which are averaged.
        tokenizer: what ``tokenizer.json`` holds.

    Raises:
        ValueError: either cannot be read, or the network takes or gives something else.
    """

    def __init__(self, model: bytes, tokenizer: str) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised; nothing is printed beside them
        try:
            self._tokenizer = Tokenizer.from_str(tokenizer)
        except Exception as wrong:  # it raises nothing narrower
            raise ValueError("tokenizer.json is no tokenizer") from wrong
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as wrong:  # each kind of fault has a class of its own, in a module without promises
            raise ValueError("model.onnx is no network that can be run here") from wrong
        taken = self._session.get_inputs()
        if "input_ids" not in {one.name for one in taken} or not {one.name for one in taken} <= _FILLED:
            raise ValueError("model.onnx must take 'input_ids', and may take 'attention_mask' and 'token_type_ids'")
        self._types = {one.name: np.int32 if one.type == "tensor(int32)" else np.int64 for one in taken}
        given = self._session.get_outputs()
        named = [one.name for one in given if one.name == "sentence_embedding"]
        self._output = (named or [given[0].name])[0]
        padding = self._tokenizer.padding or {}
        self._tokenizer.no_padding()
        self._filler = int(padding.get("pad_id", 0))
        self._tokenizer.enable_truncation(max_length=WINDOW, stride=SHARED)

    def encoded(self, texts: list[str], check: Callable[[int, int], None]) -> Floats32:
        """A vector of length 1 for each text.

        Args:
            texts: different ones, each with a word at least.
            check: called with how many are done, and how many there are.
        """
        made: list[NDArray[np.float64]] = []
        for low in range(0, len(texts), _TEXTS):
            made.append(self._some(texts[low : low + _TEXTS], partial(_of_all, check, low, len(texts))))
        return unit(np.concatenate(made)) if made else np.zeros((0, 1), np.float32)

    def _some(self, texts: list[str], check: Callable[[int], None]) -> NDArray[np.float64]:
        windows = [
            (place, window.ids)
            for place, whole in enumerate(self._tokenizer.encode_batch(texts))
            for window in (whole, *whole.overflowing)
        ]
        windows.sort(key=lambda one: len(one[1]))  # those of one length need no filling up
        total: NDArray[np.float64] | None = None
        for low in range(0, len(windows), _BATCH):
            part = windows[low : low + _BATCH]
            sizes = np.array([len(ids) for _, ids in part])
            pooled = self._pooled([ids for _, ids in part], sizes)
            if total is None:
                total = np.zeros((len(texts), pooled.shape[1]))
            np.add.at(total, [place for place, _ in part], pooled * sizes[:, None])
            check(min(low + _BATCH, len(windows)) * len(texts) // len(windows))
        return np.zeros((len(texts), 1)) if total is None else total

    def _pooled(self, ids: list[list[int]], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """A vector of each window."""
        there = np.arange(max(1, int(sizes.max()))) < sizes[:, None]
        filled = np.full(there.shape, self._filler, np.int64)
        filled[there] = np.concatenate([np.array(one, np.int64) for one in ids])
        every = {"input_ids": filled, "attention_mask": there, "token_type_ids": np.zeros_like(filled)}
        given = {name: every[name].astype(kind) for name, kind in self._types.items()}
        found: NDArray[np.float64] = np.asarray(self._session.run([self._output], given)[0], dtype=np.float64)
        if found.ndim == 3 and found.shape[:2] == there.shape:
            found = (found * there[:, :, None]).sum(axis=1) / np.maximum(sizes, 1)[:, None]
        if found.ndim != 2 or len(found) != len(ids) or not np.isfinite(found).all():
            raise ValueError("model.onnx must give a vector of each text, or of each of its tokens, of finite numbers")
        return found
