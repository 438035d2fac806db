"""Float32 products by whichever library multiplies faster on this processor.

torch has two. MKL, which it takes by itself, keeps its AVX-512 kernels to Intel's processors; oneDNN,
which it takes for convolutions, has them for all, and then is about twice as fast. oneDNN gets the
matrices, too, once torch allows it bfloat16 for them. What it does with that leave depends on the
processor: where there is AMX it rounds to bfloat16, and where there is none it computes in float32.
So it is given leave only without AMX, and only if a product that is tried comes out as float32 has it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch

LEAST = 4096
"""Models with fewer parameters than this have products so small that calling oneDNN takes longer."""


@contextmanager
def quick(parameters: int) -> Iterator[None]:
    """Within this, products for a model of so many parameters go where they are faster.

    By sizes and the processor, not by the clock, so that a run that goes on has the bits it would
    have had. The setting is torch's, of the whole process: enter it where no other thread multiplies.

    >>> with quick(50_890):
    ...     product = torch.ones(2, 3, 4) @ torch.ones(2, 4, 5)
    >>> float(product.sum())
    120.0
    """
    switch = _switch()
    if switch is None or parameters < LEAST or switch.fp32_precision == "bf16" or not pays():
        yield
        return
    before = switch.fp32_precision
    switch.fp32_precision = "bf16"
    try:
        yield
    finally:
        switch.fp32_precision = before


@cache
def pays() -> bool:
    """Is oneDNN the faster one here, and as exact?"""
    if _switch() is None or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    if not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        return False
    if "AuthenticAMD" not in _processor():
        return False
    return not torch.cpu._is_amx_tile_supported() and _exact()


def _switch() -> Any:
    """torch's setting of what oneDNN may do with float32 matrices; older versions have none."""
    found = getattr(torch.backends.mkldnn, "matmul", None)
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return found if available and hasattr(found, "fp32_precision") else None


def _processor() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:  # not on Linux
        return ""


def _exact() -> bool:
    """Sums of 784 products, off by no more than float32 explains: bfloat16's are off by a thousandth."""
    switch, generator = _switch(), torch.Generator().manual_seed(0)
    left = torch.randn(3, 64, 784, generator=generator)
    right = torch.randn(3, 784, 16, generator=generator)
    before, switch.fp32_precision = switch.fp32_precision, "bf16"
    try:
        found = [torch.bmm(left, right), left[0] @ right[0]]
    finally:
        switch.fp32_precision = before
    exact = left.double() @ right.double()
    return all(
        float((ours - true).norm() / true.norm()) < 1e-5
        for ours, true in zip(found, (exact, exact[0]), strict=True)
    )
