"""Dropout whose mask is a function of a key, so that engines, threads and vmap cannot change it."""

import torch
from torch import Tensor, nn

from turnout.errors import require

_WORD = 0xFFFF_FFFF


def _mix(x: Tensor) -> Tensor:
    # A bijective hash of 32-bit words held in int64. Both multipliers are below 2**31, so no
    # product leaves int64: signed overflow would be undefined in compiled code.
    x = x ^ (x >> 16)
    x = (x * 0x21F0_AAAD) & _WORD
    x = x ^ (x >> 15)
    x = (x * 0x735A_2D97) & _WORD
    return x ^ (x >> 15)


def random_words(key: Tensor, count: int, salt: int = 0) -> Tensor:
    """`count` words, uniform on 0 … 2³² − 1, that depend on the int64 scalar `key` and `salt` only.

    >>> key = torch.tensor(7)
    >>> bool((random_words(key, 5) == random_words(key, 9)[:5]).all())
    True
    """
    # Two derived words: were there one, the masks of two keys could be one mask, shifted.
    low, high = key & _WORD, (key >> 32) & _WORD
    spice = (salt * 0x9E37_79B1 + 0x6A09_E667) & _WORD
    first = _mix(_mix(low ^ spice) ^ high)
    second = _mix((_mix(high ^ 0x3C6E_F372) + low + spice) & _WORD)
    index = torch.arange(count, device=key.device)
    return _mix(((index + second) & _WORD) ^ first)


class Dropout(nn.Module):
    """Sets each element to 0 with probability `p` and divides the others by 1 − p.

    The mask depends on the buffer `key`, on `salt` and on the element's place in the batch, never
    on a global generator: substitute the buffer (`torch.func.functional_call`, `vmap` over it) to
    draw anew. Give every dropout layer of a model a salt of its own, then one key serves all. With
    `channels`, whole channels [B, C, …] go at once, as in `nn.Dropout2d`.

    >>> layer = Dropout(0.5)
    >>> x = torch.ones(8)
    >>> bool((layer(x) == layer(x)).all())
    True
    """

    key: Tensor

    def __init__(self, p: float, salt: int = 0, channels: bool = False) -> None:
        super().__init__()
        require(0 <= p < 1, "dropout", p, "in [0, 1)")
        self.p, self.salt, self.channels = p, salt, channels
        # Not persistent: the key belongs to a step of a client, not to the model.
        self.register_buffer("key", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        shape = torch.Size((*x.shape[:2], *[1] * (x.dim() - 2))) if self.channels else x.shape
        words = random_words(self.key, shape.numel(), self.salt)
        keep = (words >= round(self.p * 2**32)).to(x.dtype).reshape(shape)
        return x * (keep * (1 / (1 - self.p)))

    def extra_repr(self) -> str:
        return f"p={self.p}, salt={self.salt}" + (", channels=True" if self.channels else "")


def key_buffers(module: nn.Module) -> list[str]:
    """The names of all dropout keys in `module`, as `functional_call` wants them.

    >>> key_buffers(nn.Sequential(nn.Linear(2, 2), Dropout(0.5)))
    ['1.key']
    """
    return [
        f"{name}.key" if name else "key"
        for name, part in module.named_modules()
        if isinstance(part, Dropout)
    ]
