"""Numbers and ranges as the page and the terminal show them."""

from __future__ import annotations

import math


def short(value: float) -> str:
    """Format with three digits, commas from a thousand on and an exponent from a million on.

    >>> short(2.3841), short(458_200.0), short(-0.26), short(4.069e9), short(3e-8)
    ('2.38', '458,200', '-0.26', '4.07e9', '3e-8')
    """
    if 1e3 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")


def counted(value: float) -> str:
    """Format a final number: whole from a thousand on, with three digits below.

    >>> counted(4_285_610.2), counted(0.7989), counted(3.814e20)
    ('4,285,610', '0.799', '3.81e20')
    """
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else short(value)


def wanted(limits: tuple[float, float]) -> str:
    """Format a range.

    >>> wanted((1.5, 3.0)), wanted((5.0, math.inf)), wanted((-math.inf, 2.0))
    ('1.5 to 3', 'at least 5', 'at most 2')
    """
    low, high = limits
    if math.isinf(high):
        return f"at least {short(low)}"
    return f"at most {short(high)}" if math.isinf(low) else f"{short(low)} to {short(high)}"


def trials(number: int) -> str:
    """
    >>> trials(1), trials(3)
    ('1 trial', '3 trials')
    """
    return f"{number} trial{'s' * (number != 1)}"
