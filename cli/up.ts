import { join } from "node:path";
import { openLogFile, reportTo } from "../supervisor/log.ts";
import { locateHome, createHome, isNewHome } from "../supervisor/home/home.ts";
import { ownConfigWarnings } from "../embedded/gateway-check.ts";
import type { Stack } from "../embedded/stack.ts";
import { findRunners } from "../supervisor/gateway/find-runners.ts";
import { nameOf } from "../supervisor/release/release.ts";
import {
  becomeRelease,
  switchBack,
  readSwitched,
  untilSwitchAsked,
} from "../supervisor/release/switch.ts";
import { alreadyRunning, findFirstSteps } from "./first-steps.ts";
import type { LiveScreen } from "./live-screen.ts";
import { createSignInLink } from "./open.ts";
import { onOutputError } from "./output-closed.ts";
import { onStopSignals } from "../core/signals.ts";
import { findStack } from "./stack-client.ts";
import { StackDisplay } from "./stack-display.ts";
import { print } from "./terminal.ts";
import { upDetached, type Start } from "./up-detached.ts";
import { defineVerb, jsonArg, type ExitCode } from "./verb.ts";

const WAIT_NOTICE_AFTER_MS = 2500;

export const up = defineVerb({
  name: "up",
  description: "Start everything on this machine and keep it running.",
  example: "hearth up --detach",
  args: {
    detach: {
      type: "boolean",
      description: "Return when everything is up; stop it with `hearth down`",
    },
    echo: {
      type: "boolean",
      default: true,
      description: "Add the alias hearth-echo, which repeats its input",
      negativeDescription: "Do not add the alias hearth-echo",
    },
    ...jsonArg,
  },
  run: async ({ detach, echo, json }) => {
    const startedAt = performance.now();
    const home = locateHome();
    const isFirst = isNewHome(home);
    createHome(home);
    const runners = findRunners(process.env);
    const start: Start = {
      echo,
      runners,
      configWarnings: ownConfigWarnings(home, process.env),
      startedAt,
      isFirst,
      json: json === true,
    };
    return detach ? upDetached(home, start) : upHere(start);
  },
});

/** Runs the supervisor in this process until a stop is requested. */
async function upHere(start: Start): Promise<ExitCode> {
  const { echo, json } = start;
  const say = json ? () => {} : print;
  const home = locateHome();
  const switched = readSwitched(home);
  const switchRequested = untilSwitchAsked(home);
  const log = reportTo(openLogFile(join(home.logs, "supervisor.log")));
  const display = new StackDisplay(log, json);
  const requests = listenForStop(display);
  // Not loaded by the help, nor by `--detach`.
  const { AlreadyRunning, startStack } = await import("../embedded/stack.ts");
  try {
    const stack = await startStack({
      home,
      ...switched,
      env: process.env,
      echo,
      onService: display.onService,
      onCheck: display.onCheck,
      onNotice: display.onNotice,
      onStopRequested: requests.onStopRequested,
      stop: requests.stop,
      halt: requests.halt,
    });
    display.showUp();
    print(await textWhenUp(stack, start));
    const requested = await Promise.race([requests.requested, switchRequested]);
    if (typeof requested !== "string") {
      display.end();
      say(`\nSwitching to release ${nameOf(requested)} …`);
      await stack.leave(`switching to release ${requested.id}`);
      return becomeRelease(home, requested);
    }
    await stopStack(stack, display.showStopping(), requested, say);
    return 0;
  } catch (error) {
    display.end();
    if (requests.stop.aborted) {
      say("\nHearth stopped before it was up.");
      return 0;
    }
    switchBack(home, switched.upgradeFrom, error);
    if (!(error instanceof AlreadyRunning)) {
      throw error;
    }
    print(json ? alreadyRunning(error.message) : error.message);
    return 0;
  } finally {
    requests.forget();
  }
}

interface StopRequests {
  /** Resolves with the reason of the first request. */
  readonly requested: Promise<string>;
  readonly onStopRequested: (reason: string) => void;
  /** Aborted by the first signal. */
  readonly stop: AbortSignal;
  /** Aborted by the second signal. */
  readonly halt: AbortSignal;
  readonly forget: () => void;
}

function listenForStop(display: StackDisplay): StopRequests {
  const stop = new AbortController();
  const halt = new AbortController();
  const requested = Promise.withResolvers<string>();
  const request = (reason: string) => {
    stop.abort();
    requested.resolve(reason);
  };
  // Without a reader of its output (`hearth up | head`), the stack would be left running.
  onOutputError(({ code }) => {
    if (code === "EPIPE") {
      request("standard output was closed");
    }
  });
  const forget = onStopSignals(request, (signal) => {
    halt.abort();
    display.end();
    process.exit(signal === "SIGINT" ? 130 : 143);
  });
  return {
    requested: requested.promise,
    onStopRequested: requested.resolve,
    stop: stop.signal,
    halt: halt.signal,
    forget,
  };
}

async function stopStack(
  stack: Stack,
  screen: LiveScreen,
  reason: string,
  say: (sentence: string) => void,
): Promise<void> {
  say(`\nStopping (${reason}) …`);
  const notice = setTimeout(
    () =>
      screen.say(
        "  waiting for running calls to finish; press Ctrl-C again to stop immediately",
      ),
    WAIT_NOTICE_AFTER_MS,
  );
  try {
    await stack.stop(reason);
  } finally {
    clearTimeout(notice);
    screen.end();
  }
  say("Hearth stopped; keys, spend and notes are kept.");
}

async function textWhenUp(
  stack: Stack,
  { runners, configWarnings, startedAt, isFirst, json }: Start,
): Promise<string> {
  const tookMs = performance.now() - startedAt;
  return findFirstSteps({
    addresses: stack.addresses,
    signInLink: await createSignInLink(
      findStack(stack.addresses.supervisor),
    ).catch(() => undefined),
    secretsFile: locateHome().secrets,
    masterKey: stack.secrets.masterKey,
    gatewayReady: stack.gatewayReady,
    tookMs,
    runners: await runners,
    configWarnings: await configWarnings,
    stopWith: "Ctrl-C",
    isFirst,
    json,
  });
}
