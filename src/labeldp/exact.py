"""Rational numbers where privacy is decided: epsilon as a fraction, and both sides of e^x.

Nothing here is a float once it has been read. A float argument means its shortest decimal, so 0.1 is 1/10 and
ten releases at 0.1 add up to exactly 1.

    >>> epsilon_of(0.1), epsilon_of("2.5"), epsilon_of(1)
    (Fraction(1, 10), Fraction(5, 2), Fraction(1, 1))
    >>> exp_lower(1) < Fraction("2.71828182845904523536028747135266249775724709369995") < exp_upper(1)
    True
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import SupportsFloat

from labeldp.errors import EpsilonError, InputError

__all__ = ["EPSILON_MAX", "EPSILON_MIN", "Rational", "epsilon_of", "exp_lower", "exp_upper", "rational"]

Rational = int | float | str | Fraction | Decimal | SupportsFloat
"""What a caller may write for an exact number."""

DIGITS_MAX = 1000

EPSILON_MIN = Fraction(1, 10**6)
EPSILON_MAX = Fraction(40)
"""A 64-bit coin expresses e^epsilon between these with room to spare; beyond them it would round to nothing."""


def rational(value: Rational, name: str = "value") -> Fraction:
    """The exact rational that `value` writes: a float is its shortest decimal, a string a decimal or a fraction."""
    if isinstance(value, bool):
        raise InputError(f"{name}={value!r} is no number.")
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    text = value if isinstance(value, str | Decimal) else _shortest_decimal(value, name)
    try:
        # 1e999999999 is a short text and a long number.
        if len(str(text)) > DIGITS_MAX or ("e" in str(text).lower() and abs(Decimal(text).adjusted()) > DIGITS_MAX):
            raise InputError(f"{name}={str(value)[:40]!r} has more than {DIGITS_MAX} digits.")
        return Fraction(text)
    except InputError:
        raise
    except (ValueError, ArithmeticError):
        raise InputError(f"{name}={value!r} is no finite number.") from None


def epsilon_of(value: Rational, name: str = "epsilon") -> Fraction:
    """`value` as an exact privacy budget, or an EpsilonError that says what is wrong with it."""
    try:
        epsilon = rational(value, name)
    except InputError as error:
        raise EpsilonError(str(error)) from None
    if epsilon <= 0:
        raise EpsilonError(f"{name}={value} must be greater than 0.")
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        raise EpsilonError(
            f"{name}={value} is outside {float(EPSILON_MIN):g}…{float(EPSILON_MAX):g}, the range in which "
            f"64-bit integers express e^{name}."
        )
    return epsilon


def exp_lower(x: Rational, bits: int = 80) -> Fraction:
    """A rational at most e^x and above (1 − 2^-bits)·e^x.  Proof: docs/proofs/exponential.md."""
    exact = rational(x, "x")
    return _exp_positive_lower(exact, bits) if exact >= 0 else 1 / _exp_positive_upper(-exact, bits)


def exp_upper(x: Rational, bits: int = 80) -> Fraction:
    """A rational at least e^x and below (1 + 2^-bits)·e^x.  Proof: docs/proofs/exponential.md."""
    exact = rational(x, "x")
    return _exp_positive_upper(exact, bits) if exact >= 0 else 1 / _exp_positive_lower(-exact, bits)


def _shortest_decimal(value: SupportsFloat, name: str) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} is no number.") from None
    if not math.isfinite(number):
        raise InputError(f"{name}={value!r} is not finite.")
    # float32 and friends carry their own shortest decimal; float() would spell out their binary digits.
    return str(value) if type(value).__module__ == "numpy" else repr(number)


def _exp_positive_lower(x: Fraction, bits: int) -> Fraction:
    halvings, scale = _plan(x, bits)
    r = (x.numerator << scale) // (x.denominator << halvings)
    term = total = 1 << scale
    n = 0
    while term:
        n += 1
        term = (term * r >> scale) // n
        total += term
    for _ in range(halvings):
        total = total * total >> scale
    return Fraction(total, 1 << scale)


def _exp_positive_upper(x: Fraction, bits: int) -> Fraction:
    halvings, scale = _plan(x, bits)
    one = 1 << scale
    r = _ceil_div(x.numerator << scale, x.denominator << halvings)
    term = total = one
    n = 0
    while term > 1:
        n += 1
        term = _ceil_div(_ceil_div(term * r, one), n)
        total += term
    # r ≤ 1/2 (in units of 2^scale): what follows the last term is at most that term again.
    total += term
    for _ in range(halvings):
        total = _ceil_div(total * total, one)
    return Fraction(total, one)


def _ceil_div(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _plan(x: Fraction, bits: int) -> tuple[int, int]:
    """Halvings that bring x below 1/2, and enough binary places that all the roundings stay under 2^-bits."""
    halvings = max(0, (x.numerator // x.denominator + 1).bit_length() + 1)
    return halvings, bits + 2 * halvings + 16
