"""The errors that LiteLLM catches; nothing here raises them."""

from psycopg.errors import UniqueViolation as UniqueViolationError  # noqa: F401


class PrismaError(Exception):
    pass


class DataError(PrismaError):
    pass


class RecordNotFoundError(PrismaError):
    pass


class ClientNotConnectedError(PrismaError):
    pass


class RawQueryError(PrismaError):
    pass


class TableNotFoundError(PrismaError):
    pass
