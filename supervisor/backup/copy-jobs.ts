import { join } from "node:path";
import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { scheduleOf } from "../jobs/config.ts";
import { raiseWhile } from "../alerts/alarm.ts";
import type { Job, JobContext, JobOutcome } from "../jobs/job.ts";
import type { Context } from "../context.ts";
import { findCopyKey, makeAndKeepCopyKey } from "./copy-key.ts";
import { fetchCopy } from "./fetch-copy.ts";
import { newestBackup } from "./manifest.ts";
import { peerOf, type Peer } from "./peer.ts";
import { listPeerCopies, sendCopy } from "./send-copy.ts";
import { sizeWords } from "../../core/size.ts";

export const KEY_FINGERPRINT = "backup-copy-key";
const KEY_POLL_EVERY_MS = 30_000;
const KINDS = ["postgres", "notes"] as const;

const fetchOptions = z.strictObject({
  kind: z.enum(KINDS).default("postgres"),
  name: z.string().optional(),
  /** Set if it differs from the key of this host. */
  key: z.string().optional(),
});

/** Jobs for copies of backups on the other host: sent each night, fetched on demand. */
export function copyJobs(context: Context): readonly Job[] {
  const { env, config, credentials, alarms } = context;
  const peer = peerOf(env, credentials().operatorPassword);
  const settings = config.jobs.backup_copy;
  if (peer === undefined) {
    // It may be of the previous process, which had another host.
    alarms.clear(KEY_FINGERPRINT);
  }
  return [
    {
      name: "backup-copy",
      description: "Send the newest backups, encrypted, to the other host.",
      schedule: {
        ...scheduleOf(settings),
        cron: peer === undefined ? null : settings.cron,
      },
      check: () => void needPeer(peer),
      run: (job) => sendNewest(context, needPeer(peer), job),
    },
    {
      name: "backup-fetch",
      description: "Fetch a copy from the other host.",
      purpose: "restore",
      schedule: { cron: null, timeoutMs: settings.timeout, retries: 0 },
      options: [
        {
          name: "kind",
          kind: "choice",
          label: "Backup of",
          values: () => KINDS,
          otherwise: "postgres",
        },
        {
          name: "name",
          kind: "text",
          label: "Name of the backup",
          note: "Defaults to the newest.",
        },
      ],
      check: () => void needPeer(peer),
      run: (job) => fetchAsked(context, needPeer(peer), job),
    },
  ];
}

async function sendNewest(
  { home, env, alarms }: Context,
  peer: Peer,
  { signal, progress, now }: JobContext,
): Promise<JobOutcome> {
  const { key, shownAt } =
    findCopyKey(home, env) ?? makeAndKeepCopyKey(home, now());
  // Without the key, copies are useless when this host is lost.
  raiseWhile(shownAt === null, alarms, {
    fingerprint: KEY_FINGERPRINT,
    level: "warning",
    subject: "backup-copy",
    text: "the key of the copies on the other host has not been saved yet: without it, they cannot be decrypted if this host is lost.",
    command: "hearth backup key",
  });
  const there = new Set(
    (await listPeerCopies(peer, signal)).map(
      (copy) => `${copy.kind}/${copy.name}`,
    ),
  );
  const sent: string[] = [];
  for (const kind of KINDS) {
    const name = newestBackup(join(home.backups, kind), now());
    if (name === undefined || there.has(`${kind}/${name}`)) {
      continue;
    }
    const backup = join(home.backups, kind, name);
    const bytes = await sendCopy({
      peer,
      key,
      kind,
      name,
      backup,
      signal,
      progress,
    });
    sent.push(`${kind} ${name} (${sizeWords(bytes)})`);
  }
  return sent.length === 0
    ? {
        status: "skipped",
        summary: "the other host already has the newest backups.",
      }
    : {
        status: "done",
        summary: `sent ${sent.join(" and ")} to the other host.`,
        details: { sent },
      };
}

/** Clears the alarm soon after the key was shown, which `hearth backup key` does in another process. Returns a function that stops polling. */
export function awaitKeyShown({
  home,
  env,
  alarms,
}: Pick<Context, "home" | "env" | "alarms">): () => void {
  const timer = setInterval(() => {
    try {
      const key = findCopyKey(home, env);
      if (key !== undefined && key.shownAt !== null) {
        alarms.clear(KEY_FINGERPRINT);
      }
    } catch {
      // An unreadable key makes the next backup-copy fail, which reports it.
    }
  }, KEY_POLL_EVERY_MS);
  return () => clearInterval(timer);
}

async function fetchAsked(
  { home, env }: Context,
  peer: Peer,
  { signal, progress, options, now }: JobContext,
): Promise<JobOutcome> {
  const parsed = fetchOptions.safeParse(options);
  if (!parsed.success) {
    throw new Failure(
      parsed.error.issues.map(
        ({ path, message }) => `${path.join(".")}: ${message}.`,
      ),
    );
  }
  const { kind, name } = parsed.data;
  const key = parsed.data.key ?? findCopyKey(home, env)?.key;
  if (key === undefined) {
    throw new Failure(
      "this host has no key of copies: pass a file with the key shown by `hearth backup key` with --key-file.",
    );
  }
  const directory = join(home.backups, kind);
  const fetched = await fetchCopy({
    peer,
    key,
    kind,
    name,
    directory,
    now,
    signal,
    progress,
  });
  return {
    status: "done",
    summary: `${fetched} fetched and verified: restore it with ${kind === "postgres" ? `\`hearth restore ${fetched}\`` : `\`hearth notes restore\``}.`,
    details: { kind, backup: fetched },
  };
}

function needPeer(peer: Peer | undefined): Peer {
  if (peer !== undefined) {
    return peer;
  }
  throw new Failure(
    "no other host is configured: set HEARTH_PEER_URL to the address of its supervisor.",
  );
}
