"""Progress bars: how often they are drawn, and what they say is left."""

import sys

from tqdm import tqdm


class Bar(tqdm):
    """A tqdm that estimates the time left from what was done after its first update.

    The first update waits until programs are compiled, which takes as long as thousands of steps.
    """

    first = None  # the count and the time at the first update

    def __init__(self, **settings):
        # somebody looks at a terminal or a notebook; elsewhere each update is a line of a log
        in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
        seconds = 0.5 if in_notebook or sys.stderr.isatty() else 20
        super().__init__(mininterval=seconds, dynamic_ncols=True, **settings)

    def update(self, n=1):
        drawn = super().update(n)
        if self.first is None and not self.disable:
            self.first = self.n, self._time()
        return drawn

    def say(self, text: str):
        """Shows what is being done: at once where somebody looks, else as often as the bar is
        drawn."""
        if not self.disable and (due := self._time() - self.last_print_t >= self.mininterval):
            self.last_print_t = self._time()
        self.set_postfix_str(text, refresh=not self.disable and (due or self.mininterval < 1))

    @property
    def format_dict(self):
        values = super().format_dict
        if self.n < (self.total or 0):
            count, start = self.first or (self.n, 0)
            seconds = self._time() - start
            values["rate"] = (self.n - count) / seconds if seconds > 0 else 0  # 0 is shown as ?
        return values
