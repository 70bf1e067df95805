from fractions import Fraction

import numpy as np
import pytest

from labeldp import LabelError, LabelSpace, LabelSpaceError, SeededEntropy
from labeldp.errors import InputError


def test_integers() -> None:
    space = LabelSpace.integers(-2, 3)
    assert space.values.tolist() == [-2, -1, 0, 1, 2, 3]
    assert (len(space), space.low, space.high, space.continuous, space.step) == (6, -2, 3, False, 1)


def test_grid_is_equally_spaced_in_rationals_though_not_in_floats() -> None:
    space = LabelSpace.grid(0, 1, 11)
    assert space.continuous
    assert space.step == Fraction(1, 10)
    assert len(set(np.diff(space.values).tolist())) > 1


def test_of_sorts_and_finds_a_lattice_in_decimals() -> None:
    assert LabelSpace.of([0.3, 0.1, 0.2]).step == Fraction(1, 10)
    assert LabelSpace.of([1, 2, 4]).step is None


def test_values_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        LabelSpace.integers(0, 2).values[0] = 5


def test_equality_is_by_meaning() -> None:
    assert LabelSpace.integers(0, 2) == LabelSpace.of([2, 1, 0])
    assert hash(LabelSpace.integers(0, 2)) == hash(LabelSpace.of([2, 1, 0]))
    assert LabelSpace.integers(0, 2) != LabelSpace.grid(0, 2, 3)


@pytest.mark.parametrize(
    "space",
    [
        LabelSpace.integers(0, 52),
        LabelSpace.grid(0, 400, 401),
        LabelSpace.of([1.5, 2, 7]),
        LabelSpace.grid(1e9, 1e9 + 1, 5),
    ],
)
def test_repr_builds_the_same_space(space: LabelSpace) -> None:
    assert eval(repr(space), {"LabelSpace": LabelSpace}) == space


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: LabelSpace.of([1]), "at least two labels are needed, got 1"),
        (lambda: LabelSpace.of([]), "at least two labels"),
        (lambda: LabelSpace.of([1, 2, 1.0]), "label 1 is there twice"),
        (lambda: LabelSpace.of([1, float("nan")]), "not finite"),
        (lambda: LabelSpace.of([1, float("inf")]), "not finite"),
        (lambda: LabelSpace.of([1, "two"]), "no finite number"),
        (lambda: LabelSpace.of([0, 1e200]), "larger than 1e150"),
        (lambda: LabelSpace.of(["1", "1.00000000000000000001"]), "floats cannot tell them apart"),
        (lambda: LabelSpace.integers(3, 3), "high must be greater than low"),
        (lambda: LabelSpace.integers(0, 0.5), "whole bounds"),
        (lambda: LabelSpace.grid(0, 1, 1), "at least two labels"),
        (lambda: LabelSpace.grid(0, 1, 2.5), "whole number"),
        (lambda: LabelSpace.grid(1, 0, 5), "high must be greater than low"),
        (lambda: LabelSpace.integers(0, 10**9), "use a coarser grid"),
    ],
)
def test_bad_label_sets(build: object, says: str) -> None:
    with pytest.raises(LabelSpaceError, match=says):
        build()  # type: ignore[operator]


def test_non_numbers_are_input_errors() -> None:
    with pytest.raises(InputError, match="low"):
        LabelSpace.integers(float("nan"), 3)  # type: ignore[arg-type]


GRID = LabelSpace.grid(0, 1, 11)


def test_rounding_keeps_the_mean() -> None:
    """200,000 copies of one label: the mean index within 5 standard errors; a shift by 0.02 steps would be noticed."""
    for label in (0.0, 0.05, 0.123, 0.99, 1.0):
        labels = np.full(200_000, label)
        indices = GRID.indices(labels, SeededEntropy(3).stream("rounding"))
        below = np.floor(label * 10)
        assert set(indices.tolist()) <= {below, below + 1}
        spread = np.sqrt((label * 10 - below) * (1 - label * 10 + below) / 200_000)
        assert abs(indices.mean() - label * 10) <= 5 * spread + 1e-12 < 0.02


def test_rounding_is_exact_to_2_to_the_minus_50() -> None:
    """The threshold itself, found by bisection with chosen words, against the rational share."""

    class Words:
        def __init__(self, word: int) -> None:
            self.word = word

        def blocks(self, rows: object, labels: np.ndarray, attempt: int = 0) -> np.ndarray:  # noqa: ARG002
            return np.full((len(labels), 2), self.word, dtype=np.uint64)

    for label in (0.05, 0.123456789, 0.999, 0.7000000001):
        low, high = 0, (1 << 64) - 1
        below = int(GRID.indices(np.array([label]), Words(high))[0])
        while low < high:
            middle = (low + high) // 2
            up = GRID.indices(np.array([label]), Words(middle))[0] > below
            low, high = (middle + 1, high) if up else (low, middle)
        left, right = (Fraction(float(v)) for v in GRID.values[below : below + 2])
        share = (Fraction(label) - left) / (right - left)
        assert abs(Fraction(low, 1 << 64) - share) < Fraction(1, 1 << 50)


@pytest.mark.parametrize(
    ("space", "labels", "says"),
    [
        (GRID, [0.5, np.nan], "label nan at row 1 is no finite number"),
        (GRID, [np.inf], "label inf at row 0"),
        (GRID, [0.5, 0.1, 1.5], r"label 1\.5 at row 2 is outside 0…1; widen the bounds or pass clip=True"),
        (LabelSpace.integers(0, 52), [61.0], "label 61 at row 0 is outside 0…52"),
        (LabelSpace.integers(0, 52), [1.0, 2.5], r"label 2\.5 at row 1 is not one of the 53 labels"),
    ],
)
def test_labels_that_do_not_belong(space: LabelSpace, labels: list[float], says: str) -> None:
    with pytest.raises(LabelError, match=says):
        space.checked(np.array(labels))


def test_clipping_moves_to_the_nearer_bound_and_mends_nothing_else() -> None:
    assert GRID.checked(np.array([-3.0, 0.5, 9.0]), clip=True).tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(LabelError, match="finite"):
        GRID.checked(np.array([np.nan]), clip=True)
    with pytest.raises(LabelError, match="not one of"):
        LabelSpace.integers(0, 5).checked(np.array([2.5]), clip=True)
