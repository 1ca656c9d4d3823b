from prisma import Prisma  # noqa: F401


class TransactionManager:
    pass
