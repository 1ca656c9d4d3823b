import { execFile } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { TestPostgres } from "../servers/postgres.ts";
import { endsOf } from "./calls.ts";
import { startRun, type CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { openTestbed, type Testbed } from "./testbed.ts";

const runProgram = promisify(execFile);

const ATTACKERS = 64;
/** 14 MB of `[[],[],…]`, which would take 13 times as much memory once parsed. */
const BODY = Buffer.from(`[${"[],".repeat(4_900_000)}[]]`);
const PATHS = ["/v1/chat/completions", "/key/generate", "/no/such/route"];
/** A ninth of what attackers send at once. V8 collects buffers, which are outside its heap, once there are 64 MB of them. */
const MAX_GROWTH_MB = 100;
/** V8's young generation reaches its full size in this time, so that only the effect of large bodies is measured. */
const WARM_UP_MS = 4_000;
const SMALL_BODY = Buffer.from("{}");

/** Clients without a key send large bodies for as long as `outageMs`; calls with known keys continue and memory stays constant. */
export async function keylessCampaign(
  postgres: TestPostgres,
  options: CampaignOptions,
): Promise<Verdict> {
  const { log, outageMs } = options;
  const testbed = await openTestbed(postgres.url("postgres"), {
    gateways: 1,
    redis: false,
  });
  try {
    const run = await startRun(testbed, options, { calls: 60 });
    const warmUp = startAttack(testbed, SMALL_BODY);
    await sleep(WARM_UP_MS);
    await warmUp.stop();
    const before = await rssMbOf(testbed);
    const from = run.received.length;
    const attack = startAttack(testbed, BODY);
    let highest = before;
    for (const until = Date.now() + outageMs; Date.now() < until;) {
      await sleep(100);
      highest = Math.max(highest, await rssMbOf(testbed));
    }
    const served = run.received.slice(from);
    const answers = await attack.stop();
    log(
      `keyless: ${endsOf(served)}; attackers got ${answers}; RSS ${before} MB, at most ${highest} MB`,
    );
    const verdict = await run.end("keyless");
    const faults = [
      ...(highest - before < MAX_GROWTH_MB
        ? []
        : [`RSS grew from ${before} to ${highest} MB`]),
      ...(served.some(({ end }) => end === "ok") ? [] : ["no call was served"]),
      ...(answers === "401, 404" ? [] : [`attackers got ${answers}`]),
    ];
    return {
      ...verdict,
      wrongAnswers: verdict.wrongAnswers + faults.length,
      details: [...verdict.details, ...faults],
    };
  } finally {
    await testbed.close();
  }
}

async function rssMbOf({ gateways: [gateway] }: Testbed): Promise<number> {
  const { stdout } = await runProgram("ps", [
    "-o",
    "rss=",
    "-p",
    `${gateway?.pid()}`,
  ]);
  return Math.round(Number(stdout) / 1_024);
}

/** Each attacker sends one body after the other, each on a new connection, until it gets a response. */
function startAttack(
  testbed: Testbed,
  body: Buffer,
): { stop(): Promise<string> } {
  const [gateway] = testbed.gateways;
  if (gateway === undefined) {
    throw new Error("a testbed without a gateway");
  }
  const { port } = gateway;
  const statuses = new Set<string>();
  let stopped = false;

  function sendOne(path: string): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.on("data", (answer) => {
        const status = /^HTTP\/1.1 (\d+)/.exec(answer.toString("latin1"))?.[1];
        if (status !== undefined) {
          statuses.add(status);
        }
        socket.destroy();
      });
      // The gateway closes the connection before the body is sent.
      socket.on("error", () => undefined);
      socket.on("close", () => resolve());
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
      );
      socket.write(body);
    });
  }

  async function attacker(at: number): Promise<void> {
    while (!stopped) {
      await sendOne(PATHS[at % PATHS.length] ?? "/");
    }
  }

  const attackers = Promise.all(
    Array.from({ length: ATTACKERS }, (_, at) => attacker(at)),
  );
  return {
    async stop() {
      stopped = true;
      await attackers;
      return [...statuses].sort().join(", ");
    },
  };
}
