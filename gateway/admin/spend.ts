import { adjustSpend } from "../database/adjustments.ts";
import { ensurePartitions } from "../database/partitions.ts";
import { beforeCommit, transaction, type Client } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { invalidParam } from "../http/errors.ts";
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

/** Lowers a payer's spend to `dollars`, and returns what it was before; throws 400 where it is less. */
export async function lowerSpend(
  admin: Admin,
  of: Kind,
  dollars: number,
  row: Row,
): Promise<number> {
  const { previous } = await setSpend(
    admin,
    of,
    dollars,
    async () => row,
    (spend) => {
      if (dollars > spend) {
        throw invalidParam(
          "reset_to",
          `must be at most the current spend, ${spend}: only calls raise a spend.`,
        );
      }
    },
  );
  return previous;
}

/** Sets a payer's spend in its budget's window by a row of the ledger, in the transaction of `work`. Dollars. */
async function setSpend(
  admin: Admin,
  of: Kind,
  dollars: number,
  work: Work,
  /** Throws where the previous spend does not permit it. */
  check: (previous: number) => void = () => {},
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
      check(previous);
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
