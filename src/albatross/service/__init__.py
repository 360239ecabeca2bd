"""`albatross serve`: a decision service with one bandit per user, on one log that is the truth.

A log replays to the same bits only with the same kernels of BLAS: others give other last digits. So the kernels are
fixed here, before NumPy is loaded, to those that all processors with AVX2 have, in one thread: the matrices of a user
are too small for more, and threads that wait for each other take fifty times as long on a busy machine.
"""

from __future__ import annotations

import os
from pathlib import Path


def _has_avx2() -> bool:
    try:
        return " avx2 " in Path("/proc/cpuinfo").read_text()
    except OSError:  # not on Linux
        return False


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if _has_avx2():
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
