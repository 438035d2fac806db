"""A client's stable name: what the roster knows it by, whatever node it runs on today."""

from collections.abc import Callable

from flwr.app import Context

Naming = Callable[[Context], str]


def stable_name(context: Context) -> str:
    """`name` or `partition-id` of the SuperNode's --node-config; else the node's id.

    A node's id outlives a restart only if the SuperNode has keys, so give one of the others.
    """
    for key in ("name", "partition-id"):
        if key in context.node_config:
            return str(context.node_config[key])
    return str(context.node_id)
