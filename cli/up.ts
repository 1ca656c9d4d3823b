import { join } from "node:path";
import { openLogFile, reportTo } from "../supervisor/log.ts";
import { locateHome, makeHome } from "../supervisor/home/home.ts";
import { AlreadyRunning, startStack, type Stack } from "../embedded/stack.ts";
import { inWords } from "../core/duration.ts";

import {
  findRunners,
  type FoundRunner,
} from "../embedded/discovery/runners.ts";
import { nameOf } from "../supervisor/release/release.ts";
import {
  becomeRelease,
  goBack,
  readSwitched,
  untilSwitchAsked,
} from "../supervisor/release/switch.ts";
import type { ServiceView } from "../supervisor/runtimes/runtime.ts";
import { findFirstSteps, type FirstSteps } from "./first-steps.ts";
import { openScreen, type LiveScreen } from "./live-screen.ts";
import { makeSignInLink } from "./open.ts";
import { onReaderGone } from "./reader-gone.ts";
import { onStopSignals } from "../embedded/signals.ts";
import { findStack } from "./stack-client.ts";
import { serviceCell } from "./states.ts";
import { paint, print } from "./terminal.ts";
import { upDetached } from "./up-detached.ts";
import { defineVerb, type ExitCode } from "./verb.ts";

const SAY_THAT_IT_WAITS_AFTER_MS = 2500;

export const up = defineVerb({
  name: "up",
  description: "Start everything on this machine and keep it running.",
  example: "hearth up --detach",
  args: {
    detach: {
      type: "boolean",
      description: "Return when everything is up; `hearth down` stops it",
    },
    echo: {
      type: "boolean",
      default: true,
      description: "Add the alias hearth-echo, which repeats what it is told",
      negativeDescription: "Leave the alias hearth-echo out",
    },
  },
  run: async ({ detach, echo }) => {
    const begun = performance.now();
    const home = locateHome();
    makeHome(home);
    const runners = findRunners(process.env);
    if (detach) {
      return upDetached({ home, echo, runners, begun });
    }
    return upHere(echo, runners, begun);
  },
});

/** Runs the supervisor in this very process until it is told to stop. */
async function upHere(
  echo: boolean,
  runners: Promise<readonly FoundRunner[]>,
  begun: number,
): Promise<ExitCode> {
  const stop = new AbortController();
  const halt = new AbortController();
  const stopAsked = Promise.withResolvers<string>();
  const home = locateHome();
  const switched = readSwitched(home);
  const switchAsked = untilSwitchAsked(home);
  const report = reportTo(openLogFile(join(home.logs, "supervisor.log")));
  let screen = openScreen();
  let isUp = false;
  const tell = (reason: string) => {
    stop.abort();
    stopAsked.resolve(reason);
  };
  // What runs here is not left behind by who piped it into something that has ended.
  onReaderGone(() => tell("nobody reads what it says any more"));
  const forget = onStopSignals(tell, (signal) => {
    halt.abort();
    screen.end();
    process.exit(signal === "SIGINT" ? 130 : 143);
  });
  try {
    const stack = await startStack({
      home,
      ...switched,
      env: process.env,
      echo,
      onService: (view, before) => {
        report.onService(view, before);
        if (isUp) {
          sayChange(view, before);
        } else {
          screen.show(view);
        }
      },
      onCheck: (check, before) => {
        report.onCheck(check, before);
        // That a check is up at its first look is no news.
        if (before === "new" && check.state === "up") {
          return;
        }
        sayEvent(
          check.state === "down",
          `check ${check.name} is ${check.state}: ${check.latest?.text ?? ""}`,
        );
      },
      onNotice: (sentence) => {
        report.onNotice(sentence);
        screen.say(paint("soft", `  ${sentence}`));
      },
      onStopAsked: stopAsked.resolve,
      stop: stop.signal,
      halt: halt.signal,
    });
    screen.end();
    isUp = true;
    print(await textWhenUp(stack, runners, performance.now() - begun));
    const asked = await Promise.race([stopAsked.promise, switchAsked]);
    isUp = false;
    if (typeof asked !== "string") {
      print(`\nSwitching to release ${nameOf(asked)} …`);
      await stack.leave(`switching to release ${asked.id}`);
      return becomeRelease(home, asked);
    }
    screen = openScreen();
    await stopStack(stack, screen, asked);
    return 0;
  } catch (error) {
    screen.end();
    if (stop.signal.aborted) {
      print("\nHearth stopped before it was up.");
      return 0;
    }
    goBack(home, switched.upgradeFrom, error);
    if (!(error instanceof AlreadyRunning)) {
      throw error;
    }
    print(error.message);
    return 0;
  } finally {
    forget();
  }
}

async function stopStack(
  stack: Stack,
  screen: LiveScreen,
  reason: string,
): Promise<void> {
  print(`\nStopping (${reason}) …`);
  const patience = setTimeout(
    () =>
      screen.say(
        "  the gateway finishes the calls that run; Ctrl-C once more ends everything at once",
      ),
    SAY_THAT_IT_WAITS_AFTER_MS,
  );
  try {
    await stack.stop(reason);
  } finally {
    clearTimeout(patience);
    screen.end();
  }
  print("Hearth is stopped; keys, spend and notes are kept.");
}

async function textWhenUp(
  stack: Stack,
  runners: Promise<readonly FoundRunner[]>,
  tookMs: number,
): Promise<string> {
  const steps: FirstSteps = {
    addresses: stack.addresses,
    signInLink: await makeSignInLink(
      findStack(stack.addresses.supervisor),
    ).catch(() => undefined),
    secretsFile: locateHome().secrets,
    masterKey: stack.secrets.masterKey,
    gatewayReady: stack.gatewayReady,
    tookMs,
    runners: await runners,
    stopWith: "Ctrl-C",
  };
  return findFirstSteps(steps);
}

/** While it runs, what happens is said in a line each. */
function sayChange(view: ServiceView, before: ServiceView["state"]): void {
  if (
    view.state === before ||
    view.state === "waiting" ||
    view.state === "starting"
  ) {
    return;
  }
  const fine = view.state === "running";
  const took =
    fine && view.tookMs !== null ? ` again after ${inWords(view.tookMs)}` : "";
  sayEvent(
    !fine,
    `${view.name} is ${serviceCell(view.state).text.slice(2)}${took}${view.reason === null ? "" : `: ${view.reason}`}`,
  );
}

function sayEvent(bad: boolean, text: string): void {
  const time = new Date().toTimeString().slice(0, 8);
  print(
    `${paint("soft", time)}  ${bad ? paint("bad", "✕") : paint("ok", "●")} ${text}`,
  );
}
