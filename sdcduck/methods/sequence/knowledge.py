"""How well somebody knows single cells who has the answers to all questions so far, noise and all.

A secret is a property that units have or not. Who asks knows how many units are in each cell, n_i, and before the first
answer nothing but that each has the property with chance 1/2: the number of those in cell i has variance n_i / 4. An
answer is the sum over a set of cells, a'x, plus noise of variance v. After it the covariance of what is not known is

    S - S a a' S / (a' S a + v),        S = diag(n / 4) in the beginning,

the error of the best linear guess, whatever the noise looks like (Kalman 1960; Rao 1973, section 4a.11). v = 0 are
exact answers.

S is diag(n / 4) - D H H' D with D = diag(n / 4): H has a row for each atom and a column for each answer. Cells of one
atom, those that no set so far told apart, have the same row, so that a set that cuts an atom copies it, and a group of
m units inside an atom has the variance m / 4 - (m / 4)^2 q with q the squared length of its row. Its *error*, as a
share of what it was before all answers, is sqrt(1 - m q / 4), for groups that are whole atoms or whole cells.

Nothing here depends on answers or true sizes: the sets, the variances and the published sizes decide.

Sums of a measure are the same, with the largest contribution as the unit: of each value is known that it lies between
0 and that, so that its variance is 1/4 at most. Their noise is far smaller than this, and is what hides a value: so the
error of a group is a share of the one that a single number of its own leaves, whose variance share is v / (m / 4 + v)
(`own`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.numerics import scipy
from sdcduck.methods.sequence.one_thread import one_thread
from sdcduck.methods.sequence.packed import pack, unpack
from sdcduck.methods.sequence.sets import Cells, Cut, Floats, Indices, Sets, cut, signatures

MOST_BYTES = 256 << 20
"""What the knowledge of one login may take."""
_BLOCK = 512  # sets that are worked in at a time: their columns are held beside each other
_KNOWN = 1e-9  # of the variance before: less than that of a new set is left, so it follows from the others
_ZERO = 1e-5  # an error below it is rounding: the group is known
_KEY = np.dtype("V16")


class TooMuchKnown(ValueError):
    """The knowledge would take more than it may."""


@dataclass(frozen=True)
class Answers:
    """The cells of an answer that are about one secret.

    Attributes:
        sets: which units each is about.
        variances: float64 (k,), of their noise; 0 is an exact number.
    """

    sets: Sets
    variances: Floats

    @classmethod
    def of(cls, sets: Sets, variances: ArrayLike) -> Answers:
        """Answers; one variance may stand for all."""
        spread = np.array(np.broadcast_to(np.asarray(variances, dtype=np.float64), (len(sets),)))
        if not (np.isfinite(spread).all() and (spread >= 0).all()):
            raise ValueError("a variance must be a finite number of at least 0")
        return cls(sets, spread)


@dataclass(frozen=True)
class _Step:
    """What answers would make of the knowledge of one secret."""

    split: Cut
    keys: list[bytes]
    columns: Floats
    q: Floats
    exact: bool


@dataclass(frozen=True)
class Would:
    """What a question would teach, if it were answered.

    Attributes:
        new_sets: sets that were not asked before.
        least_error: the smallest error that any small group has then; 1 if there is none.
        smallest_atom: units of the smallest atom that the question makes; infinite if it makes none.
        by_secret: the least error of each secret that the question is about.
    """

    new_sets: int
    least_error: float
    smallest_atom: float
    by_secret: dict[str, float]
    _answers: Mapping[str, Answers] = field(repr=False)
    _steps: dict[str, _Step] = field(repr=False)
    _version: int = field(repr=False)

    @property
    def journal(self) -> bytes:
        """The question itself, for a file: `Knowledge.replay` does it again."""
        names = list(self._answers)
        arrays: dict[str, NDArray[np.generic]] = {}
        for place, answers in enumerate(self._answers.values()):
            sets = answers.sets
            arrays |= {f"starts{place}": sets.starts, f"cells{place}": sets.cells}
            arrays |= {f"weights{place}": sets.weights, f"variances{place}": answers.variances}
        return pack("question", {"secrets": names}, arrays)


class _Secret:
    """The knowledge of one secret."""

    def __init__(self, cells: Cells, own: float = 0.0) -> None:
        self.cells, self.own = cells, own
        self.atom_of: Indices = np.zeros(len(cells), np.int64)
        self.sizes: Floats = np.array([cells.sizes.sum()])
        self.rows = _Growing(1)
        self.q: Floats = np.zeros(1)
        self.base: Floats = np.zeros(1)
        self.keys: set[bytes] = set()
        self.exact = True

    def would(self, answers: Answers, most: int) -> _Step:
        answers.sets.check(len(self.cells))
        keys = answers.sets.keys(self.cells.names)
        order = np.argsort(answers.variances, kind="stable")  # of equal sets the one that tells most
        fresh: dict[bytes, int] = {}
        for place in order.tolist():
            if keys[place] not in self.keys and answers.sets.starts[place] < answers.sets.starts[place + 1]:
                fresh.setdefault(keys[place], place)
        which = np.array(sorted(fresh.values()), np.int64)
        sets, variances = answers.sets.some(which), answers.variances[which]
        split = Cut(self.atom_of, np.arange(len(self.sizes)), self.sizes, np.empty(0))
        for begin in range(0, len(sets), _BLOCK):
            some = sets.some(np.arange(begin, min(begin + _BLOCK, len(sets))))
            split = _after(split, cut(split.atom_of, self.cells.sizes, signatures(some, len(self.cells))))
        atoms = len(split.parent)
        if self.bytes_with(atoms, len(sets)) > most:
            raise TooMuchKnown("the answers so far and these are more than can be kept of one login")
        columns, exact = self._columns(split, sets, variances)
        q = self.q[split.parent] + np.einsum("ij,ij->i", columns, columns)
        return _Step(split, [keys[place] for place in which], columns, q, exact)

    def bytes_with(self, atoms: int, sets: int) -> int:
        """What is kept, at most, with so many atoms and more sets."""
        width = min(self.rows.width + sets, atoms)
        return 8 * atoms * (width + 3) + 24 * len(self.cells) + 16 * (len(self.keys) + sets)

    def _columns(self, split: Cut, sets: Sets, variances: Floats) -> tuple[Floats, bool]:
        """The columns of H that the sets add."""
        weight = split.sizes[:, None] / 4
        old, parent = self.rows.values, split.parent
        exact, found = self.exact and not variances.any(), [np.zeros((len(parent), 0))]

        def left(a: Floats) -> Floats:
            """S a, in units of the first variances."""
            prior = weight * a
            merged = prior
            if len(parent) > len(old):
                merged = prior[: len(old)].copy()
                np.add.at(merged, parent[len(old) :], prior[len(old) :])
            rest = old @ (old.T @ merged)
            rest = rest[parent] if len(parent) > len(old) else rest
            np.subtract(a, rest, out=rest)
            for block in found:
                rest -= block @ (block.T @ prior)
            return rest

        for begin in range(0, len(sets), _BLOCK):
            some = np.arange(begin, min(begin + _BLOCK, len(sets)))
            a = sets.some(some).rows(split.atom_of, len(parent))
            rest = left(a)
            if exact:  # H' D H is the identity then, and a second time takes away what rounding left
                rest = left(rest)
            found.append(_orthogonal(a, rest, weight, variances[some]))
        return np.hstack(found), exact

    def keep(self, step: _Step) -> None:
        self.rows.extend(step.split.parent, step.columns)
        self.base = self.base[step.split.parent]
        self.atom_of, self.sizes, self.q = step.split.atom_of, step.split.sizes, step.q
        self.keys.update(step.keys)
        self.exact = step.exact
        if self.rows.width >= max(2 * len(self.sizes), 64):
            self.rows.condense()

    def groups(self, split: Cut, small: float) -> Floats:
        """Units of the largest small group of each atom: itself, or the largest of its cells; 0 if there is none."""
        cells = np.where(self.cells.sizes < small, self.cells.sizes, 0.0)
        largest = np.zeros(len(split.sizes))
        np.maximum.at(largest, split.atom_of, cells)
        return np.where(split.sizes < small, split.sizes, largest)

    def least(self, step: _Step, small: float) -> float:
        groups = self.groups(step.split, small)
        errors = _share(groups, step.q, self.base[step.split.parent], self.own)
        return float(errors.min(initial=1.0))


class Knowledge:
    """What one login knows about all secrets of a policy.

    >>> known = Knowledge({"married": Cells.numbered([1, 1, 40])})
    >>> asked = known.would({"married": Answers.of(Sets.of_lists([[0, 1, 2], [1, 2]]), 2.0)})
    >>> asked.new_sets, round(asked.least_error, 4), asked.smallest_atom
    (2, 0.9676, 1.0)
    >>> known.keep(asked)
    >>> known.would({"married": Answers.of(Sets.of_lists([[2, 1]]), 2.0)}).new_sets
    0
    """

    def __init__(
        self, secrets: Mapping[str, Cells], most_bytes: int = MOST_BYTES, *, own: Mapping[str, float] | None = None
    ) -> None:
        self._secrets = {name: _Secret(cells, (own or {}).get(name, 0.0)) for name, cells in secrets.items()}
        self._most, self._version = most_bytes, 0
        self._granting = True

    @property
    def secrets(self) -> dict[str, Cells]:
        """The secrets and their cells."""
        return {name: secret.cells for name, secret in self._secrets.items()}

    @property
    def sets(self) -> int:
        """Different sets that were answered."""
        return sum(len(secret.keys) for secret in self._secrets.values())

    @property
    def atoms(self) -> int:
        """Groups that the sets tell apart."""
        return sum(len(secret.sizes) for secret in self._secrets.values())

    @property
    def nbytes(self) -> int:
        """What `to_bytes` takes, nearly."""
        return sum(secret.bytes_with(len(secret.sizes), 0) for secret in self._secrets.values())

    @one_thread()
    def would(self, answers: Mapping[str, Answers], min_units: float = 3) -> Would:
        """What a question would teach. Nothing is kept.

        Args:
            answers: of each secret that the question is about; all cells of its result together.
            min_units: groups of fewer units are small; at least 3.

        Raises:
            TooMuchKnown: it could not be kept.
            ValueError: a secret or cell is not there.
        """
        steps, room = {}, self._most - self.nbytes
        for name, given in answers.items():
            if name not in self._secrets:
                raise ValueError(f"there is no secret '{name}'")
            secret = self._secrets[name]
            before = secret.bytes_with(len(secret.sizes), 0)
            steps[name] = secret.would(given, room + before)
            room -= secret.bytes_with(len(steps[name].split.parent), len(steps[name].keys)) - before
        small = max(min_units, 3.0)
        errors = {name: self._secrets[name].least(step, small) for name, step in steps.items()}
        return Would(
            sum(len(step.keys) for step in steps.values()),
            min(errors.values(), default=1.0),
            min((step.split.smallest for step in steps.values()), default=np.inf),
            errors, answers, steps, self._version,
        )  # fmt: skip

    @one_thread()
    def keep(self, asked: Would) -> None:
        """The question was answered.

        Raises:
            ValueError: another one was kept since it was tried.
        """
        if asked._version != self._version:
            raise ValueError("another question was kept since this one was tried: try it again")
        for name, step in asked._steps.items():
            self._secrets[name].keep(step)
        self._version += 1
        self._granting = False

    def grant(self, answers: Mapping[str, Answers]) -> None:
        """What is published anyway: errors are shares of what they are after it, so that a limit is on what is added.

        Raises:
            ValueError: a question was kept before.
        """
        if not self._granting:
            raise ValueError("what is granted must come before the first question")
        asked = self.would(answers)
        self.keep(asked)
        self._granting = True
        for name in asked._steps:
            self._secrets[name].base = self._secrets[name].q.copy()

    def follow(self, asked: Would, name: str) -> tuple[Indices, NDArray[np.bool_]]:
        """The atom of each cell if a question is answered, and of which atoms the number follows then."""
        step = asked._steps[name]
        return step.split.atom_of, 1 - step.split.sizes * step.q / 4 < _ZERO**2

    def least_error(self, min_units: float = 3) -> float:
        """The smallest error of any small group, of all secrets; 1 if there is none."""
        small, least = max(min_units, 3.0), 1.0
        for secret in self._secrets.values():
            now = Cut(secret.atom_of, np.arange(len(secret.sizes)), secret.sizes, np.empty(0))
            groups = secret.groups(now, small)
            least = min(least, float(_share(groups, secret.q, secret.base, secret.own).min(initial=1.0)))
        return least

    def errors(self, name: str) -> Floats:
        """Of each cell of a secret, as a share of its error before all answers: float64 (c,). 1 where nobody is."""
        secret = self._secrets[name]
        return _share(secret.cells.sizes, secret.q[secret.atom_of], secret.base[secret.atom_of], secret.own)

    @one_thread()
    def covariance(self, name: str) -> Floats:
        """Of the numbers of all cells of a secret: float64 (c, c). For looking at small ones."""
        secret = self._secrets[name]
        prior = secret.cells.sizes / 4
        rows = secret.rows.values[secret.atom_of] * prior[:, None]
        return np.asarray(np.diag(prior) - rows @ rows.T, dtype=np.float64)

    def replay(self, journal: bytes) -> None:
        """Keep a question again, from its `Would.journal`."""
        facts, arrays = unpack("question", journal)
        answers = {}
        for place, name in enumerate(facts["secrets"]):
            sets = Sets(arrays[f"starts{place}"], arrays[f"cells{place}"], arrays[f"weights{place}"])
            answers[name] = Answers.of(sets, arrays[f"variances{place}"])
        self.keep(self.would(answers))

    @one_thread()
    def to_bytes(self) -> bytes:
        """All of it, for a file."""
        arrays: dict[str, NDArray[np.generic]] = {}
        for place, secret in enumerate(self._secrets.values()):
            if secret.rows.width > len(secret.sizes):
                secret.rows.condense()
            keys = np.frombuffer(b"".join(sorted(secret.keys)), _KEY).view(np.uint8)
            arrays |= {f"names{place}": secret.cells.names, f"units{place}": secret.cells.sizes}
            arrays |= {f"atom_of{place}": secret.atom_of, f"rows{place}": secret.rows.values}
            arrays |= {f"q{place}": secret.q, f"base{place}": secret.base, f"keys{place}": keys}
        exact = [secret.exact for secret in self._secrets.values()]
        facts = {"secrets": list(self._secrets), "exact": exact, "granting": self._granting}
        own = [secret.own for secret in self._secrets.values()]
        return pack("knowledge", facts | ({"own": own} if any(own) else {}), arrays)

    @classmethod
    def from_bytes(cls, data: bytes, most_bytes: int = MOST_BYTES) -> Knowledge:
        """What `to_bytes` wrote.

        Raises:
            ValueError: it is damaged, or cut short.
        """
        facts, arrays = unpack("knowledge", data)
        names = facts["secrets"]
        known = cls(
            {name: Cells(arrays[f"names{place}"], arrays[f"units{place}"]) for place, name in enumerate(names)},
            most_bytes,
            own=dict(zip(names, facts.get("own", [0.0] * len(names)), strict=True)),
        )
        for place, name in enumerate(names):
            secret = known._secrets[name]
            secret.atom_of, secret.q, secret.base = (arrays[f"{what}{place}"] for what in ("atom_of", "q", "base"))
            sizes = np.bincount(secret.atom_of, secret.cells.sizes, minlength=len(secret.q))
            secret.sizes = sizes.astype(np.float64)
            secret.rows.extend(np.zeros(len(secret.q), np.int64), arrays[f"rows{place}"])
            text = arrays[f"keys{place}"].tobytes()
            secret.keys = {text[begin : begin + 16] for begin in range(0, len(text), 16)}
            secret.exact = facts["exact"][place]
        known._granting = facts["granting"]
        return known


class _Growing:
    """A matrix that gets rows and columns, with room for some more of both."""

    def __init__(self, height: int) -> None:
        self._held: Floats = np.zeros((height, 0))
        self.height, self.width = height, 0

    @property
    def values(self) -> Floats:
        return self._held[: self.height, : self.width]

    def extend(self, parent: Indices, columns: Floats) -> None:
        """More rows, the first ones and copies of some of them, and then more columns."""
        height, width = len(parent), self.width + columns.shape[1]
        if height > self._held.shape[0] or width > self._held.shape[1]:
            held = np.empty((height + height // 8, width + width // 8))
            held[: self.height, : self.width] = self.values
            self._held = held
        added = parent[self.height :]
        self._held[self.height : height, : self.width] = self._held[added, : self.width]
        self._held[:height, self.width : width] = columns
        self.height, self.width = height, width

    def condense(self) -> None:
        """As many columns as rows are enough: H H' stays the same."""
        triangle = np.asarray(np.linalg.qr(self.values.T, mode="r"))
        self._held = np.ascontiguousarray(triangle.T)
        self.width = self._held.shape[1]


def _after(first: Cut, second: Cut) -> Cut:
    """Two cuts as one."""
    separated = np.concatenate([first.separated, second.separated])
    return Cut(second.atom_of, first.parent[second.parent], second.sizes, separated)


def _share(groups: Floats, q: Floats, base: Floats, own: float) -> Floats:
    """Errors of groups of so many units as shares of what they were at `base`; 1 where there was nothing to learn.

    Args:
        own: variance of a number of their own after which they are what they were; 0: none.
    """
    now, before = 1 - groups * q / 4, 1 - groups * base / 4
    if own:
        before = np.minimum(before, own / (groups / 4 + own))
    unknown = before > _ZERO**2
    share = np.sqrt(np.clip(np.divide(now, before, out=np.ones_like(now), where=unknown), 0, 1))
    return np.where(share < _ZERO, 0.0, share)


def _orthogonal(a: Floats, rest: Floats, weight: Floats, variances: Floats) -> Floats:
    """Columns of H from what the sets before leave: those that add nothing fall away."""
    prior = weight * a
    inner = prior.T @ rest
    scale = np.einsum("ij,ij->j", prior, a) + variances
    scale = np.sqrt(np.where(scale > 0, scale, 1.0))
    matrix = ((inner + inner.T) / 2 + np.diag(variances)) / np.outer(scale, scale)
    if matrix.diagonal().max(initial=0) <= _KNOWN:  # LAPACK does not ask that of the first, and rounding is no news
        return np.zeros((len(a), 0))
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(matrix, tol=_KNOWN, lower=1)
    chosen = pivots[:rank] - 1
    scaled = rest[:, chosen] / scale[chosen]
    solved = scipy.linalg.solve_triangular(
        factor[:rank, :rank], scaled.T, lower=True, overwrite_b=True, check_finite=False
    )
    return np.asarray(solved.T, dtype=np.float64)
