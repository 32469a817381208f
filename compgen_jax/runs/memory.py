import contextlib


@contextlib.contextmanager
def explained(advice):
    yield
