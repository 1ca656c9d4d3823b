import { inWords } from "../core/duration.ts";
import type { ServiceView } from "../supervisor/runtimes/runtime.ts";
import { serviceCell } from "./states.ts";
import { alignColumns, widthOf, type Cell, type Stream } from "./terminal.ts";

export interface LiveScreen {
  readonly show: (view: ServiceView) => void;
  /** A sentence above the table. */
  readonly say: (sentence: string) => void;
  /** Draws the final state and stops updating. */
  readonly end: () => void;
}

const REDRAW_EVERY_MS = 100;

/** Shows nothing: standard output is for programs. */
const HIDDEN: LiveScreen = { show: () => {}, say: () => {}, end: () => {} };

/** Services that are starting or stopping: a table updated in place on a terminal, elsewhere one line per change. */
export function openScreen(isHidden: boolean): LiveScreen {
  if (isHidden) {
    return HIDDEN;
  }
  const { stdout } = process;
  return stdout.isTTY ? drawnScreen(stdout) : plainScreen(stdout);
}

function drawnScreen(stream: Stream): LiveScreen {
  const views = new Map<string, ServiceView>();
  let shownLines = 0;
  let ended = false;
  const erase = () => (shownLines === 0 ? "" : `\x1b[${shownLines}A\x1b[0J`);
  const draw = () => {
    const lines = alignColumns(
      [...views.values()].map(cellsOf),
      widthOf(stream),
      stream,
    );
    stream.write(`${erase()}${lines.map((line) => `${line}\n`).join("")}`);
    shownLines = lines.length;
  };
  const timer = setInterval(draw, REDRAW_EVERY_MS);
  return {
    show: (view) => {
      if (ended) {
        return;
      }
      views.set(view.name, view);
      draw();
    },
    say: (sentence) => {
      stream.write(`${erase()}${sentence}\n`);
      shownLines = 0;
      if (!ended) {
        draw();
      }
    },
    end: () => {
      if (ended) {
        return;
      }
      clearInterval(timer);
      draw();
      ended = true;
    },
  };
}

function plainScreen(stream: Stream): LiveScreen {
  const last = new Map<string, string>();
  let ended = false;
  return {
    show: (view) => {
      if (ended || last.get(view.name) === view.state) {
        return;
      }
      last.set(view.name, view.state);
      if (view.state === "waiting") {
        return;
      }
      const cells = cellsOf(view).map(({ text }) => text);
      stream.write(`${cells.join("  ").trimEnd()}\n`);
    },
    say: (sentence) => {
      stream.write(`${sentence}\n`);
    },
    end: () => {
      ended = true;
    },
  };
}

function cellsOf(view: ServiceView): readonly Cell[] {
  const state = serviceCell(view.state);
  return [
    {
      text: `  ${state.text}`,
      ...(state.tone === undefined ? {} : { tone: state.tone }),
    },
    { text: view.name, tone: "strong" },
    { text: timeOf(view), tone: "soft", right: true },
    { text: detailOf(view), tone: "soft" },
  ];
}

function timeOf(view: ServiceView): string {
  switch (view.state) {
    case "running":
      return view.tookMs === null ? "" : inWords(view.tookMs);
    case "waiting":
    case "stopped":
      return "";
    case "starting":
    case "stopping":
    case "backing-off":
    case "gave-up":
    case "ended":
    case "absent":
    case "unknown":
      return inWords(Date.now() - view.since);
  }
}

function detailOf(view: ServiceView): string {
  if (view.state === "running") {
    return view.adopted
      ? `${view.address}  (pid ${view.pid}, still running)`
      : view.address;
  }
  return view.state === "stopping" || view.state === "stopped"
    ? ""
    : (view.reason ?? "");
}
