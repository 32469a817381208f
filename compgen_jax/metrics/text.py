"""Numbers as text, for reports and command lines; what is not known is a dash."""

UNKNOWN = "–"


def number(value, digits: int = 3) -> str:
    """So many significant digits; a dash for None (NaN as JSON has it) and for NaN."""
    return UNKNOWN if value is None or value != value else f"{value:.{digits}g}"


def interval(ends, digits: int = 3) -> str:
    """'[low, high]'."""
    return f"[{number(ends[0], digits)}, {number(ends[1], digits)}]"


def with_interval(measured: dict, digits: int = 3) -> str:
    """A {'value', 'ci95'} as 'value [low, high]', or its value alone where no end is known."""
    known = any(end is not None and end == end for end in measured["ci95"])
    text = number(measured["value"], digits)
    return f"{text} {interval(measured['ci95'], digits)}" if known else text
