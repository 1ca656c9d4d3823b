import { adjustSpend } from "../database/adjustments.ts";
import { ensurePartitions } from "../database/partitions.ts";
import { transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Admin } from "./admin-route.ts";
import { audit } from "./audit.ts";
import { entityOf, type Kind } from "./kinds/kind.ts";

/** Sets a payer's spend in its budget's window by a row of the ledger; returns the previous spend. Dollars. */
export async function setSpend(
  admin: Admin,
  of: Kind,
  row: Row,
  dollars: number,
): Promise<number> {
  const { gateway, pool, actor, windowing, now } = admin;
  // Calls that have ended count before the new value.
  await gateway.ledger.flush();
  await ensurePartitions(pool, [{ started_at: new Date(now).toISOString() }]);
  const entity = entityOf(of, row);
  const before = await transaction(pool, async (client) => {
    const [spent = "0"] = await adjustSpend(client, [{ entity, dollars }], {
      reason: { set_by: actor.name, set_to: dollars },
      windowing,
      now,
    });
    await audit(client, actor.name, {
      action: "spend_set",
      objectType: of.noun,
      objectId: entity.slice(entity.indexOf(":") + 1),
      before: { spend: Number(spent) },
      after: { spend: dollars },
    });
    return Number(spent);
  });
  await gateway.ledger.totals.reload([entity]);
  return before;
}
