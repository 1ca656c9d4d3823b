import { isWithin } from "../../moments.ts";
import type { History } from "../../history/history.ts";
import type { ServiceState, ServiceStats, ServiceView } from "../runtime.ts";

export interface KnownContainers {
  readonly names: () => readonly string[];
  readonly get: (name: string) => ServiceView | undefined;
  readonly stats: (name: string) => ServiceStats | undefined;
  /** Takes in what was seen of one container, and tells what is new about it. */
  readonly note: (view: ServiceView) => void;
  /** It was not there. */
  readonly miss: (name: string) => void;
  readonly measured: (name: string, stats: ServiceStats) => void;
  /** Whether its next new start was ordered by this supervisor, which told the history already. */
  readonly order: (name: string, ordered: boolean) => void;
}

interface Known {
  readonly view: ServiceView;
  /** When it was first missed; null while it is there. */
  readonly missedSince: number | null;
  readonly stats: ServiceStats | undefined;
}

/** What was seen last of every container that was ever there, and what that means: replaced, started again, gone. */
export function createKnownContainers(options: {
  readonly history: History;
  readonly onChange: (view: ServiceView, before: ServiceState) => void;
  /** Milliseconds; a container that a deployment replaces is away for less. */
  readonly absentAfter: number;
}): KnownContainers {
  const { history } = options;
  const known = new Map<string, Known>();
  const ordered = new Set<string>();

  function tell(view: ServiceView, before: ServiceView): void {
    if (view.state === before.state) {
      return;
    }
    history.serviceChanged(view.name, before.state, view.state, view.reason);
    options.onChange(view, before.state);
  }

  return {
    names: () => [...known.keys()].toSorted(),
    get: (name) => known.get(name)?.view,
    stats: (name) => known.get(name)?.stats,
    note: (view) => {
      const before = known.get(view.name);
      // A look that took its time may come after a later one.
      if (isOlder(view, before?.view)) {
        return;
      }
      known.set(view.name, { view, missedSince: null, stats: before?.stats });
      if (before === undefined) {
        return;
      }
      const earlier = before.view.container;
      if (earlier?.id !== view.container?.id) {
        history.act(view.name, "start", "a new container took its place");
      } else if (
        earlier?.startedAt !== view.container?.startedAt &&
        !ordered.has(view.name)
      ) {
        history.act(view.name, "restart", howItEnded(before.view, view));
      }
      tell(view, before.view);
    },
    miss: (name) => {
      const entry = known.get(name);
      if (entry === undefined) {
        return;
      }
      const since = entry.missedSince ?? Date.now();
      const gone = !isWithin(since, options.absentAfter, Date.now());
      const { container: _gone, ...rest } = entry.view;
      const view: ServiceView = {
        ...rest,
        state: gone ? "absent" : "waiting",
        since,
        pid: null,
        reason: gone
          ? "its container is gone"
          : "its container is gone: a deployment may be replacing it",
      };
      known.set(name, { view, missedSince: since, stats: undefined });
      tell(view, entry.view);
    },
    measured: (name, stats) => {
      const entry = known.get(name);
      if (entry !== undefined) {
        known.set(name, { ...entry, stats });
      }
    },
    order: (name, isOrdered) => {
      if (isOrdered) {
        ordered.add(name);
      } else {
        ordered.delete(name);
      }
    },
  };
}

function isOlder(view: ServiceView, than: ServiceView | undefined): boolean {
  const started = view.container?.startedAt ?? null;
  const known = than?.container?.startedAt ?? null;
  return started !== null && known !== null && started < known;
}

function howItEnded(before: ServiceView, now: ServiceView): string {
  // Docker counts a restart when the process ends, which may have been seen before its new start.
  const wasSeen = before.state === "backing-off";
  if (!wasSeen && now.restarts <= before.restarts) {
    return "its container was restarted";
  }
  return (wasSeen ? before : now).container?.oomKilled === true
    ? "its memory ran out; Docker started it again"
    : "it ended; Docker started it again";
}
