"""Prisma's `where` as SQL."""

from psycopg import sql

OPERATORS = {
    "equals": "{} = {}",
    "not": "{} IS DISTINCT FROM {}",
    "gt": "{} > {}",
    "gte": "{} >= {}",
    "lt": "{} < {}",
    "lte": "{} <= {}",
    "in": "{} = ANY ({})",
    "notIn": "{} <> ALL ({})",
    "has": "{1} = ANY ({0})",
    "hasSome": "{} && {}",
}


def condition(where, columns, values, value_of):
    """Appends to `values`; raises on an operator that is not in OPERATORS."""
    parts = ["true"]
    for name, wanted in where.items():
        if name in ("AND", "OR", "NOT"):
            each = wanted if isinstance(wanted, list) else [wanted]
            inner = [condition(one, columns, values, value_of) for one in each]
            joined = f" {'OR' if name == 'OR' else 'AND'} ".join(inner) or "true"
            parts.append(f"{'NOT ' if name == 'NOT' else ''}({joined})")
        elif name not in columns:
            # The name of a composite key: its columns are inside.
            parts.append(condition(wanted, columns, values, value_of))
        else:
            column = sql.Identifier(name).as_string()
            tests = dict(wanted) if isinstance(wanted, dict) else {"equals": wanted}
            tests.pop("mode", None)
            if "path" in tests:
                values.append(tests.pop("path"))
                column = f"({column} #> ${len(values)}::text[])"
            for operator, value in tests.items():
                if value is None:
                    parts.append(f"{column} IS {'NOT ' if operator == 'not' else ''}NULL")
                    continue
                values.append(
                    [value_of(name, one) for one in value]
                    if operator in ("in", "notIn")
                    else value_of(name, value)
                )
                parts.append(OPERATORS[operator].format(column, f"${len(values)}"))
    return " AND ".join(parts)
