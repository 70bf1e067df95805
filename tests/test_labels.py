from fractions import Fraction

import numpy as np
import pytest

from labeldp import LabelSpace, LabelSpaceError
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
    "space", [LabelSpace.integers(0, 52), LabelSpace.grid(0, 400, 401), LabelSpace.of([1.5, 2, 7])]
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
