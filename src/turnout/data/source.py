"""Where a data set comes from and what its columns mean."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A data set in the Hub's Parquet layout: its repository, columns and splits."""

    repository: str | None = None
    """Its name on the Hub, "owner/name"; None for one that is only in a folder."""
    image: str | None = None
    """The column of PNG or JPEG images. A data set has either this or `features`."""
    features: tuple[str, ...] = ()
    """The columns of numbers, or of equally long lists of numbers."""
    label: str = "label"
    client: str | None = None
    """The column that says whose a sample is, for the natural partition."""
    config: str | None = None
    """Which of several versions in one repository."""
    train: str = "train"
    test: str | None = "test"
    """The name of the test split; None or "" holds `holdout` of the training split out instead."""
    holdout: float = 0.2
    regression: bool = False
    """Labels are numbers to fit, not classes."""
    classes: int | None = None
    """How many classes there are; None counts them."""
    mean: tuple[float, ...] | None = None
    """Of each channel of images in [0, 1]; None measures the training images."""
    std: tuple[float, ...] | None = None
    summary: str = ""


KNOWN: dict[str, Source] = {
    "mnist": Source(
        "ylecun/mnist",
        image="image",
        classes=10,
        mean=(0.1307,),
        std=(0.3081,),
        summary="handwritten digits, 60 000 + 10 000 grey images of 28 × 28",
    ),
    "fashion_mnist": Source(
        "zalando-datasets/fashion_mnist",
        image="image",
        classes=10,
        mean=(0.2860,),
        std=(0.3530,),
        summary="articles of clothing, 60 000 + 10 000 grey images of 28 × 28",
    ),
    "cifar10": Source(
        "uoft-cs/cifar10",
        image="img",
        classes=10,
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        summary="objects of 10 classes, 50 000 + 10 000 colour images of 32 × 32",
    ),
    "cifar100": Source(
        "uoft-cs/cifar100",
        image="img",
        label="fine_label",
        classes=100,
        mean=(0.5071, 0.4865, 0.4409),
        std=(0.2673, 0.2564, 0.2762),
        summary="objects of 100 classes, 50 000 + 10 000 colour images of 32 × 32",
    ),
    "svhn": Source(
        "ufldl-stanford/svhn",
        image="image",
        config="cropped_digits",
        classes=10,
        mean=(0.4377, 0.4438, 0.4728),
        std=(0.1980, 0.2010, 0.1970),
        summary="house numbers, 73 257 + 26 032 colour images of 32 × 32",
    ),
    "cinic10": Source(
        "flwrlabs/cinic10",
        image="image",
        classes=10,
        mean=(0.4789, 0.4723, 0.4305),
        std=(0.2421, 0.2383, 0.2587),
        summary="objects of 10 classes, 90 000 + 90 000 colour images of 32 × 32",
    ),
}
