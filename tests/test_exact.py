from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeldp.errors import EpsilonError
from labeldp.exact import EPSILON_MAX, EPSILON_MIN, epsilon_of, exp_lower, exp_upper


def true_exp(x: Fraction) -> mpmath.mpf:
    with mpmath.workprec(3000):
        return mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)


def assert_bounds(x: Fraction, bits: int = 80) -> None:
    with mpmath.workprec(3000):
        e = true_exp(x)
        lower, upper = (mpmath.mpf(b.numerator) / b.denominator for b in (exp_lower(x, bits), exp_upper(x, bits)))
        assert lower <= e <= upper
        assert (upper - lower) / e < mpmath.mpf(2) ** -bits


@given(st.fractions(min_value=-60, max_value=60, max_denominator=10**9))
def test_bounds_enclose_the_exponential_within_2_to_the_minus_80(x: Fraction) -> None:
    assert_bounds(x)


@pytest.mark.parametrize("x", ["0", "1e-40", "-1e-40", "1", "-1", "700", "-700", "1/3", "0.1"])
def test_bounds_at_the_edges(x: str) -> None:
    assert_bounds(Fraction(x))


def test_more_bits_are_tighter() -> None:
    assert_bounds(Fraction(1, 3), bits=400)


def test_the_bound_check_can_fail() -> None:
    with mpmath.workprec(3000):
        assert not mpmath.mpf(2.718281828459045) >= true_exp(Fraction(1))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (Fraction(2, 7), Fraction(2, 7)),
        (Decimal("2.50"), Fraction(5, 2)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.float32(0.3), Fraction(3, 10)),
        (np.int64(3), Fraction(3)),
        (1e-6, EPSILON_MIN),
        (40, EPSILON_MAX),
    ],
)
def test_epsilon_is_the_rational_that_was_written(written: object, meant: Fraction) -> None:
    assert epsilon_of(written) == meant  # type: ignore[arg-type]


def test_ten_tenths_are_one() -> None:
    assert sum(epsilon_of(0.1) for _ in range(10)) == 1


@pytest.mark.parametrize("bad", [0, -0.5, float("nan"), float("inf"), "-inf", "one", "", None, True, [1], "1/0", 1j])
def test_no_epsilon(bad: object) -> None:
    with pytest.raises(EpsilonError, match="epsilon="):
        epsilon_of(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("long", ["1e999999999", "-1e-999999999", "1" * 5000, Decimal("1e99999")])
def test_a_short_text_for_a_long_number_is_refused_at_once(long: object) -> None:
    with pytest.raises(EpsilonError, match="more than 1000 digits"):
        epsilon_of(long)  # type: ignore[arg-type]


@pytest.mark.parametrize("beyond", [1e-7, 41, "1e400", 10**9])
def test_epsilon_beyond_the_integers_names_the_limits(beyond: object) -> None:
    with pytest.raises(EpsilonError, match="1e-06…40"):
        epsilon_of(beyond)  # type: ignore[arg-type]
