import { adjustSpend } from "../database/adjustments.ts";
import { ensurePartitions } from "../database/partitions.ts";
import { beforeCommit, transaction, type Client } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";
import { audit } from "./audit.ts";
import { entityOf, type Kind } from "./kinds/kind.ts";

/** Creates or changes a payer's row in the transaction of `client`, or finds it. */
type Work = (client: Client) => Promise<Row>;

/** Does the work and, unless `dollars` is missing, sets the payer's spend, in one transaction; returns the row. */
export async function changeWithSpend(
  admin: Admin,
  of: Kind,
  dollars: number | null | undefined,
  work: Work,
): Promise<Row> {
  if (dollars == null) {
    return transaction(admin.pool, work);
  }
  const { row } = await setSpend(admin, of, dollars, work);
  return row;
}

/** Sets a payer's spend in its budget's window by a row of the ledger, in the transaction of `work`. Dollars. */
export async function setSpend(
  admin: Admin,
  of: Kind,
  dollars: number,
  work: Work,
): Promise<{ readonly row: Row; readonly previous: number }> {
  const { gateway, pool, actor, windowing, now } = admin;
  // Calls that have ended count before the new value.
  await gateway.ledger.flush();
  await ensurePartitions(pool, [{ started_at: new Date(now).toISOString() }]);
  let previous = 0;
  const row = await transaction(pool, async (client) => {
    const changed = await work(client);
    const entity = entityOf(of, changed);
    beforeCommit(client, async () => {
      const [spent = "0"] = await adjustSpend(client, [{ entity, dollars }], {
        reason: { set_by: actor.name, set_to: dollars },
        windowing,
        now,
      });
      previous = Number(spent);
      await audit(client, actor.name, {
        action: "spend_set",
        objectType: of.noun,
        objectId: entity.slice(entity.indexOf(":") + 1),
        before: { spend: previous },
        after: { spend: dollars },
      });
    });
    return changed;
  });
  await gateway.ledger.totals.reload([entityOf(of, row)]);
  return { row, previous };
}
