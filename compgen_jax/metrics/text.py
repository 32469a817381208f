"""Numbers as text, for reports and command lines; what is not known is a dash."""

UNKNOWN = "–"


def number(value, digits: int = 3) -> str:
    """So many significant digits; a dash for None (NaN as JSON has it) and for NaN."""
    return UNKNOWN if value is None or value != value else f"{value:.{digits}g}"


def with_interval(measured: dict, digits: int = 3) -> str:
    """A {'value', 'ci95'} as 'value [low, high]', or its value alone where no end is known."""
    known = any(end is not None and end == end for end in measured["ci95"])
    value, low, high = (number(end, digits) for end in (measured["value"], *measured["ci95"]))
    return f"{value} [{low}, {high}]" if known else value
