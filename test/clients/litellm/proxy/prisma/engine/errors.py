from prisma.errors import PrismaError


class EngineConnectionError(PrismaError):
    pass


class EngineRequestError(PrismaError):
    pass


class NotConnectedError(PrismaError):
    pass
