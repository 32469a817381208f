import math

from compgen_jax.metrics import text


def test_an_interval_stands_where_an_end_is_known():
    assert text.number(1234.5, digits=2) == "1.2e+03" and text.number(3) == "3"
    assert text.interval([0.5, 1.23456]) == "[0.5, 1.23]"
    assert text.with_interval({"value": 1, "ci95": [None, None]}) == "1"
    assert text.with_interval({"value": 1, "ci95": [math.nan, 2]}, digits=1) == "1 [–, 2]"
