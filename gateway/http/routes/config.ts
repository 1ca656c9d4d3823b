import type { FastifyRequest } from "fastify";
import { auditDone } from "../../admin/audit.ts";
import { adminFor } from "../../admin/route.ts";
import { formatProblem } from "../../config/load.ts";
import type { Gateway } from "../../gateway.ts";
import { CallError } from "../errors.ts";

/** POST /config/reload (admin): reads the configuration again; with a mistake in it the old one stays. */
export async function reloadConfig(gateway: Gateway, request: FastifyRequest) {
  const admin = await adminFor(gateway, request, "POST /config/reload");
  const reloaded = await gateway.reload();
  if (!reloaded.ok) {
    throw new CallError(
      "invalid_request",
      `The configuration has mistakes, the old one stays. ${reloaded.problems.map(formatProblem).join(" ")}`,
    );
  }
  const { added, removed, changed, settings, needRestart } = reloaded.diff;
  const done = { added, removed, changed, settings, need_restart: needRestart };
  await auditDone(admin, "reloaded", "configuration", "gateway", done);
  return done;
}

/** POST /config/check (admin): what would keep the next start from reading the configuration; changes nothing. */
export async function checkConfig(gateway: Gateway, request: FastifyRequest) {
  await adminFor(gateway, request, "POST /config/check");
  const read = gateway.readConfig();
  return { mistakes: read.ok ? [] : read.problems.map(formatProblem) };
}
