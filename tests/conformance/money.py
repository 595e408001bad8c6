"""An independent implementation of the contract's arithmetic in exact fractions."""

from decimal import Decimal
from fractions import Fraction

SANDBOX_MIDS = {
    "EUR-USDT": Fraction("1.0850"),
    "EUR-USDC": Fraction("1.0845"),
    "GBP-USDT": Fraction("1.2600"),
    "USD-USDT": Fraction("0.9995"),
}
SANDBOX_SPREAD = 25
DIGITS = {"EUR": 2, "GBP": 2, "USD": 2, "JPY": 0, "BHD": 3, "USDT": 6, "USDC": 6, "BTC": 8, "ETH": 8}


def floor_to(value, digits):
    return Fraction((value * 10**digits).__floor__(), 10**digits)


def rate(mid, side, bps):
    """Output per input, rounded down once: to 8 decimals, or 8 significant digits if that is finer."""
    kept = Fraction(10_000 - bps, 10_000)
    exact = mid * kept if side == "on_ramp" else kept / mid
    digits = 8
    # 8 significant digits of a value below 0.1 need more than 8 decimals.
    while exact and exact * 10 ** (digits - 7) < 1:
        digits += 1
    return floor_to(exact, digits)


def legs(pool, side, amount, mid, bps):
    """(fiat, crypto, rate) as fractions."""
    fiat, crypto = pool.split("-")
    price = rate(mid, side, bps)
    amount = Fraction(amount)
    output = floor_to(amount * price, DIGITS[crypto if side == "on_ramp" else fiat])
    return (amount, output, price) if side == "on_ramp" else (output, amount, price)


def usdt_value(pool, side, amount, mids):
    """The value that limits and the velocity cap compare."""
    fiat, crypto = pool.split("-")
    usdt_mid = mids[f"{fiat}-USDT"]
    amount = Fraction(amount)
    if side == "on_ramp":
        return amount * usdt_mid
    if crypto == "USDT":
        return amount
    return amount * usdt_mid / mids[pool]


def written(value, asset=None):
    """The API's format: fiat with all minor units, crypto and rates without trailing zeros."""
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    assert Fraction(decimal) == value, "not a finite decimal"
    if asset and asset in DIGITS and asset not in ("USDT", "USDC", "BTC", "ETH"):
        return f"{decimal:.{DIGITS[asset]}f}"
    text = f"{decimal:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
