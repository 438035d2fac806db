"""On what it was measured, and with which versions."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

PACKAGES = ("turnout", "torch", "numpy", "pfl", "flwr", "ray")


def versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> str:
    """One line: processor, cores, widest instructions, threads, memory."""
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = f", {size / 2**30:.0f} GB"
    kind = torch.backends.cpu.get_cpu_capability()
    return (
        f"{_processor()}, {os.cpu_count()} cores, {kind}, {torch.get_num_threads()} threads of "
        f"torch{memory}, {platform.system()} {platform.machine()}"
    )


def load() -> str:
    """What else the machine is doing, as the number of processes that want a core."""
    if not hasattr(os, "getloadavg"):
        return "unknown"
    return f"{os.getloadavg()[0]:.1f}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
