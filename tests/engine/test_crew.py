"""Worker threads and the threads that torch has inside of an operation."""

import subprocess
import sys

COUNT = """
import torch
from turnout.engine.crew import in_order, undisturbed

torch.set_num_threads(3)
workers = list(in_order([torch.get_num_threads] * 6, workers=2))
with undisturbed(workers=2):
    among_workers = torch.get_num_threads()
with undisturbed(workers=1):
    by_itself = torch.get_num_threads()
print(set(workers), among_workers, by_itself, torch.get_num_threads())
"""


def test_workers_have_one_thread_each_whatever_the_caller_has() -> None:
    # In a process of its own, where torch has not yet been asked for a number of threads.
    ran = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["{1}", "1", "3", "3"]
