"""Stands in for the package `prisma`, whose engine is a binary that test machines cannot download.

LiteLLM's proxy imports this module instead and so writes its own values into its own tables through psycopg. Only what the routes called by
import.test.ts need is here; anything else raises.
"""

import asyncio
import json
import os
import uuid
from contextlib import asynccontextmanager
from datetime import datetime, timezone

import psycopg
from prisma.conditions import condition
from psycopg import sql
from psycopg.rows import dict_row
from pydantic import BaseModel, ConfigDict

COLUMNS = """
  SELECT table_name, column_name, data_type, column_default FROM information_schema.columns WHERE table_schema = current_schema()"""
KEYS = """
  SELECT c.relname AS table_name, a.attname AS column_name FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) WHERE i.indisprimary"""

# Relation: its table, the column here and the one there.
RELATIONS = {
    "litellm_budget_table": ("LiteLLM_BudgetTable", "budget_id", "budget_id"),
    "litellm_model_table": ("LiteLLM_ModelTable", "model_id", "id"),
    "litellm_organization_table": (
        "LiteLLM_OrganizationTable",
        "organization_id",
        "organization_id",
    ),
    "object_permission": (
        "LiteLLM_ObjectPermissionTable",
        "object_permission_id",
        "object_permission_id",
    ),
}

# Fields whose column has another name.
RENAMED = {"model_aliases": "aliases"}


class Base(BaseModel):
    """A row; a relation that was not requested is None."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    def __getattr__(self, name):
        if name.startswith("_"):
            return super().__getattr__(name)
        return (self.__pydantic_extra__ or {}).get(name)


class Json:
    def __init__(self, data):
        self.data = data


class Prisma:
    def __init__(self, **_options):
        self._connection = None
        self._lock = asyncio.Lock()
        self._tables = {}

    async def connect(self, *_, **__):
        url = os.environ["DATABASE_URL"]
        self._connection = await psycopg.AsyncConnection.connect(
            url, autocommit=True, cursor_factory=psycopg.AsyncRawCursor, row_factory=dict_row
        )
        keys = {}
        for row in await self.query_raw(KEYS):
            keys.setdefault(row["table_name"], []).append(row["column_name"])
        columns = {}
        for row in await self.query_raw(COLUMNS):
            columns.setdefault(row["table_name"], {})[row["column_name"]] = row
        for name, known in columns.items():
            table = _Table(self, name, known, keys.get(name, []))
            self._tables[name.lower()] = table

    def is_connected(self):
        return self._connection is not None

    async def disconnect(self, *_, **__):
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def __getattr__(self, name):
        tables = self.__dict__.get("_tables", {})
        if name in tables:
            return tables[name]
        raise AttributeError(name)

    async def query_raw(self, query, *values):
        async with self._lock:
            async with self._connection.cursor() as cursor:
                await cursor.execute(query, _arrays(values))
                return await cursor.fetchall() if cursor.description else []

    async def execute_raw(self, query, *values):
        async with self._lock:
            async with self._connection.cursor() as cursor:
                await cursor.execute(query, _arrays(values))
                return cursor.rowcount

    @asynccontextmanager
    async def tx(self, **_options):
        yield self


def _arrays(values):
    """Psycopg takes a tuple for a composite value, Prisma for an array."""
    return [list(value) if isinstance(value, tuple) else value for value in values]


class _Table:
    def __init__(self, client, name, columns, key):
        self._client = client
        self._name = sql.Identifier(name).as_string()
        self._columns = columns
        self._key = key

    def _value(self, column, value):
        kind = self._columns[column]["data_type"]
        if isinstance(value, Json):
            return json.dumps(value.data)
        if kind.startswith("timestamp") and value is not None and value.tzinfo is not None:
            return value.astimezone(timezone.utc).replace(tzinfo=None)
        return value

    async def _rows(self, query, values, include=None):
        rows = await self._client.query_raw(query, *values)
        for row in rows:
            for name, value in row.items():
                if isinstance(value, datetime):
                    row[name] = value.replace(tzinfo=timezone.utc)
            for relation, wanted in (include or {}).items():
                row[relation] = await self._related(relation, row) if wanted else None
        return [Base(**row) for row in rows]

    async def _related(self, relation, row):
        if relation not in RELATIONS:
            return []
        table, here, there = RELATIONS[relation]
        if row.get(here) is None:
            return None
        other = getattr(self._client, table.lower())
        return await other.find_first(where={there: row[here]})

    def _where(self, where, values):
        return condition(where or {}, self._columns, values, self._value)

    async def find_many(self, where=None, include=None, order=None, take=None, skip=None, **_):
        values = []
        query = f"SELECT * FROM {self._name} WHERE {self._where(where, values)}"
        orders = [order] if isinstance(order, dict) else (order or [])
        parts = [
            f"{sql.Identifier(column).as_string()} {'DESC' if way == 'desc' else 'ASC'}"
            for one in orders
            for column, way in one.items()
        ]
        query += f" ORDER BY {', '.join(parts)}" if parts else ""
        query += f" LIMIT {int(take)}" if take is not None else ""
        query += f" OFFSET {int(skip)}" if skip is not None else ""
        return await self._rows(query, values, include)

    async def find_first(self, where=None, **options):
        found = await self.find_many(where, **{**options, "take": 1})
        return found[0] if found else None

    find_unique = find_first

    async def count(self, where=None, **_):
        values = []
        query = f"SELECT count(*) AS n FROM {self._name} WHERE {self._where(where, values)}"
        return (await self._client.query_raw(query, *values))[0]["n"]

    async def create(self, data, include=None):
        data = self._row(data)
        for name in self._key:
            # Prisma's engine generates `@default(uuid())`.
            if data.get(name) is None and self._columns[name]["column_default"] is None:
                data[name] = str(uuid.uuid4())
        names = ", ".join(sql.Identifier(name).as_string() for name in data)
        places = ", ".join(f"${at + 1}" for at in range(len(data)))
        values = [self._value(name, value) for name, value in data.items()]
        query = f"INSERT INTO {self._name} ({names}) VALUES ({places}) RETURNING *"
        return (await self._rows(query, values, include))[0]

    def _row(self, data):
        """The columns of a row, by their names; one that does not exist raises a KeyError."""
        return {RENAMED.get(field, field): value for field, value in data.items()}

    async def _changed(self, data, where, include):
        values = []
        parts = []
        for name, value in self._row(data).items():
            column = sql.Identifier(name).as_string()
            kind, value = (
                next(iter(value.items()))
                if isinstance(value, dict)
                and list(value) in (["increment"], ["push"], ["set"])
                else ("set", value)
            )
            values.append(self._value(name, value))
            place = f"${len(values)}"
            parts.append(
                f"{column} = "
                + {
                    "set": place,
                    "increment": f"{column} + {place}",
                    "push": f"{column} || {place}",
                }[kind]
            )
        query = f"UPDATE {self._name} SET {', '.join(parts)} WHERE {self._where(where, values)} RETURNING *"
        return await self._rows(query, values, include) if parts else []

    async def update(self, data, where, include=None):
        changed = await self._changed(data, where, include)
        return changed[0] if changed else None

    async def update_many(self, data, where):
        return len(await self._changed(data, where, None))

    async def upsert(self, where, data, include=None):
        found = await self.find_first(where, include=include)
        if found is None:
            return await self.create(data["create"], include)
        return await self.update(data["update"], where, include) or found
