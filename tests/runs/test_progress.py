"""What a progress bar says is left."""

import io

from compgen_jax.runs.progress import Bar


def test_the_time_left_is_that_of_steps_after_compiling():
    """A minute passes until the first 50 of 1000 steps are taken, then a second for every 50."""
    bar = Bar(total=1000, unit="step", file=io.StringIO())
    bar.start_t = bar.last_print_t = 0
    seconds = 60
    bar._time = lambda: seconds
    assert "0/1000 [01:00<?, ?step/s]" in str(bar)
    bar.update(50)
    assert "50/1000 [01:00<?, ?step/s]" in str(bar)
    seconds = 61
    bar.update(50)
    assert "100/1000 [01:01<00:18, 50.00step/s]" in str(bar)
    seconds = 79
    bar.update(900)
    assert "1000/1000 [01:19<00:00" in str(bar)
