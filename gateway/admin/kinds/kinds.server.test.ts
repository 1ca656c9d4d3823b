import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../../test/servers/admin.ts";
import { query } from "../../database/pool.ts";
import { ACCESS_GROUP } from "./access-group.ts";
import { BUDGET } from "./budget.ts";
import { END_USER } from "./customer.ts";
import { KEY } from "./key.ts";
import { MEMBER } from "./member.ts";
import { ORGANIZATION, ORGANIZATION_MEMBER } from "./organization.ts";
import { TAG } from "./tag.ts";
import { TEAM } from "./team.ts";
import { USER } from "./user.ts";

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

test.each([
  ACCESS_GROUP,
  BUDGET,
  END_USER,
  KEY,
  MEMBER,
  ORGANIZATION,
  ORGANIZATION_MEMBER,
  TAG,
  TEAM,
  USER,
])("the fields of $noun declare the columns of $table", async (kind) => {
  const columns = await query<{ name: string; declaration: string }>(
    fixture.running.gateway.pool,
    `SELECT attname AS name, concat_ws(' ', format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'NOT NULL' END,
        'DEFAULT ' || regexp_replace(pg_get_expr(adbin, adrelid), '::.*$', '')) AS declaration
      FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
      WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`,
    [kind.table],
  );
  const declared = Object.entries(kind.fields).flatMap(([name, { column }]) =>
    column === undefined ? [] : [[name, column]],
  );
  // A new field also needs a migration that adds its column, declared like this.
  expect(
    Object.fromEntries(
      columns.map(({ name, declaration }) => [name, declaration]),
    ),
  ).toEqual(Object.fromEntries(declared));
});
