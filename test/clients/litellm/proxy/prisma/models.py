from prisma import Base


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return Base
