import { inWords } from "../core/duration.ts";
import type { Reporter } from "../supervisor/log.ts";
import type { ServiceView } from "../supervisor/runtimes/runtime.ts";
import { openScreen, type LiveScreen } from "./live-screen.ts";
import { serviceCell } from "./states.ts";
import { paint, print } from "./terminal.ts";

/** A running stack on the terminal: a table while it starts and stops, one line for each change in between. */
export class StackDisplay implements Reporter {
  readonly #log: Reporter;
  readonly #isHidden: boolean;
  #screen: LiveScreen;
  #isUp = false;

  /** With `isHidden`, everything is only logged. */
  constructor(log: Reporter, isHidden: boolean) {
    this.#log = log;
    this.#isHidden = isHidden;
    this.#screen = openScreen(isHidden);
  }

  readonly onService: Reporter["onService"] = (view, before) => {
    this.#log.onService(view, before);
    if (this.#isUp && !this.#isHidden) {
      printChange(view, before);
    } else {
      this.#screen.show(view);
    }
  };

  readonly onCheck: Reporter["onCheck"] = (check, before) => {
    this.#log.onCheck(check, before);
    // The first result of a healthy check is not a change.
    if (this.#isHidden || (before === "new" && check.state === "up")) {
      return;
    }
    printEvent(
      check.state === "down",
      `check ${check.name} is ${check.state}: ${check.latest?.text ?? ""}`,
    );
  };

  readonly onNotice: Reporter["onNotice"] = (sentence) => {
    this.#log.onNotice(sentence);
    this.#screen.say(paint("soft", `  ${sentence}`));
  };

  /** From now on, changes are printed as lines. */
  showUp(): void {
    this.#screen.end();
    this.#isUp = true;
  }

  /** From now on, the end of the services is shown as a table. */
  showStopping(): LiveScreen {
    this.#isUp = false;
    this.#screen = openScreen(this.#isHidden);
    return this.#screen;
  }

  end(): void {
    this.#isUp = false;
    this.#screen.end();
  }
}

function printChange(view: ServiceView, before: ServiceView["state"]): void {
  if (
    view.state === before ||
    view.state === "waiting" ||
    view.state === "starting"
  ) {
    return;
  }
  const isRunning = view.state === "running";
  const took =
    isRunning && view.tookMs !== null
      ? ` again after ${inWords(view.tookMs)}`
      : "";
  printEvent(
    !isRunning,
    `${view.name} is ${serviceCell(view.state).text.slice(2)}${took}${view.reason === null ? "" : `: ${view.reason}`}`,
  );
}

function printEvent(isFailure: boolean, text: string): void {
  const time = new Date().toTimeString().slice(0, 8);
  const sign = isFailure ? paint("bad", "✕") : paint("ok", "●");
  print(`${paint("soft", time)}  ${sign} ${text}`);
}
