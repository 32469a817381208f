import math

from compgen_jax.metrics import text


def test_numbers_have_so_many_digits_and_unknown_ones_are_a_dash():
    assert text.number(0.123456) == "0.123" and text.number(1234.5, digits=2) == "1.2e+03"
    assert text.number(3) == "3" and text.number(None) == text.number(math.nan) == "–"


def test_an_interval_stands_where_an_end_is_known():
    assert text.interval([0.5, 1.23456]) == "[0.5, 1.23]"
    assert text.with_interval({"value": 1, "ci95": [0.5, 2]}) == "1 [0.5, 2]"
    assert text.with_interval({"value": 1, "ci95": [None, None]}) == "1"
    assert text.with_interval({"value": None, "ci95": [math.nan, math.nan]}) == "–"
    assert text.with_interval({"value": 1, "ci95": [math.nan, 2]}, digits=1) == "1 [–, 2]"
