"""What methods with training at the server have in common."""

from dataclasses import replace

from turnout.algorithm import Algorithm, Assistance
from turnout.errors import InputError, require
from turnout.parts.local import Local


def assisted(base: Algorithm, assistance: Assistance) -> Algorithm:
    """The method `base` with this training at the server, unless it has some already."""
    if base.assistance is not None:
        raise InputError(
            f"inner is {base.name}, in which the server trains already; it must be a method without "
            "training at the server"
        )
    return replace(base, assistance=assistance)


def server_sgd(lr: float, steps: int | None, batch_size: int | None) -> Local:
    """Plain SGD on the server's data: so many steps, or one epoch."""
    require(lr > 0, "assistance_lr", lr, "positive")
    require(steps is None or steps >= 1, "server_steps", steps, "at least 1, or none for an epoch")
    sized = batch_size is None or batch_size >= 1
    require(sized, "server_batch", batch_size, "at least 1, or none for all")
    return Local(lr, steps, 1 if steps is None else None, batch_size)


def as_a_client(base: Algorithm) -> Local:
    """The local training of a client of `base`, for the server, which keeps nothing for it."""
    rule = base.local.rule
    if rule.kept or rule.numbers or rule.shared:
        raise InputError(
            f"the local rule of {base.name} is {rule}, for which clients keep something between "
            "rounds; it must be one that the server can follow as well, such as sgd"
        )
    return base.local
