"""Before anything imports NumPy: a worker for each core leaves none for further threads of NumPy's
linear algebra, which would wait for each other (decompositions take four times as long)."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
