"""LiteLLM imports types of Prisma at run time, where any will do."""

from typing import Any


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return Any
