import { isWithin } from "../../../core/clock-jumps.ts";
import type { History } from "../../history/history.ts";
import type {
  ContainerFacts,
  ServiceState,
  ServiceStats,
  ServiceView,
} from "../runtime.ts";
import { endedOutOfMemory, wasRestartedByDocker } from "./last-end.ts";

interface Known {
  readonly view: ServiceView;
  /** When it was first missed; null while it exists. */
  readonly missedSince: number | null;
  readonly stats: ServiceStats | undefined;
}

/** A restart by this supervisor that has not ended. */
interface Order {
  /** The container before it. */
  readonly before: ContainerFacts;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly reason: string;
}

interface KnownContainersOptions {
  readonly history: History;
  readonly onChange: (view: ServiceView, before: ServiceState) => void;
  /** Milliseconds; a container that a deployment replaces is absent for less. */
  readonly absentAfter: number;
}

/** The latest state of every container, and the events derived from its changes: replaced, restarted, removed. */
export class KnownContainers {
  readonly #options: KnownContainersOptions;
  readonly #known = new Map<string, Known>();
  readonly #orders = new Map<string, Order>();

  constructor(options: KnownContainersOptions) {
    this.#options = options;
  }

  names(): readonly string[] {
    return [...this.#known.keys()].toSorted();
  }

  get(name: string): ServiceView | undefined {
    return this.#known.get(name)?.view;
  }

  stats(name: string): ServiceStats | undefined {
    return this.#known.get(name)?.stats;
  }

  /** Records the state of a container. */
  note(found: ServiceView): void {
    const before = this.#known.get(found.name);
    // A slow probe may end after a later one.
    if (isOlder(found, before?.view)) {
      return;
    }
    const view = this.#withOrder(found);
    this.#known.set(view.name, {
      view,
      missedSince: null,
      stats: before?.stats,
    });
    if (before === undefined) {
      return;
    }
    const { history } = this.#options;
    const earlier = before.view.container;
    if (earlier?.id !== view.container?.id) {
      history.act(view.name, "start", "replaced by a new container");
    } else if (
      startedAgain(earlier, view.container) &&
      !this.#orders.has(view.name)
    ) {
      history.act(view.name, "restart", endReason(before.view, view));
    }
    this.#notify(view, before.view);
  }

  /** Records that a container does not exist. */
  miss(name: string): void {
    const entry = this.#known.get(name);
    if (entry === undefined) {
      return;
    }
    const since = entry.missedSince ?? Date.now();
    const gone = !isWithin(since, this.#options.absentAfter, Date.now());
    const { container: _gone, ...rest } = entry.view;
    const view: ServiceView = {
      ...rest,
      state: gone ? "absent" : "waiting",
      since,
      pid: null,
      reason: gone
        ? "container not found"
        : "container not found; a deployment may be replacing it",
    };
    this.#known.set(name, { view, missedSince: since, stats: undefined });
    this.#notify(view, entry.view);
  }

  measured(name: string, stats: ServiceStats): void {
    const entry = this.#known.get(name);
    if (entry !== undefined) {
      this.#known.set(name, { ...entry, stats });
    }
  }

  /** Notes that this supervisor restarts a container, and has recorded so: until its new start it is stopping. */
  order(name: string, reason: string): void {
    const view = this.get(name);
    if (view?.container !== undefined) {
      this.#orders.set(name, {
        before: view.container,
        at: Date.now(),
        reason,
      });
      this.note(view);
    }
  }

  /** The restart has succeeded or failed. */
  endOrder(name: string): void {
    this.#orders.delete(name);
  }

  /** Docker calls a container running while it finishes its requests; a second stop signal would end them. */
  #withOrder(view: ServiceView): ServiceView {
    const order = this.#orders.get(view.name);
    return order === undefined || !isSameRun(order.before, view.container)
      ? view
      : { ...view, state: "stopping", since: order.at, reason: order.reason };
  }

  #notify(view: ServiceView, before: ServiceView): void {
    if (view.state === before.state) {
      return;
    }
    const { history, onChange } = this.#options;
    history.serviceChanged(view.name, before.state, view.state, view.reason);
    onChange(view, before.state);
  }
}

function isSameRun(
  before: ContainerFacts,
  now: ServiceView["container"],
): boolean {
  return before.id === now?.id && before.startedAt === now.startedAt;
}

/** The first start of a container that was only created is not a restart. */
function startedAgain(
  before: ServiceView["container"],
  now: ServiceView["container"],
): boolean {
  const earlier = before?.startedAt ?? null;
  return earlier !== null && earlier !== now?.startedAt;
}

function isOlder(view: ServiceView, than: ServiceView | undefined): boolean {
  const started = view.container?.startedAt ?? null;
  const known = than?.container?.startedAt ?? null;
  return started !== null && known !== null && started < known;
}

function endReason(before: ServiceView, now: ServiceView): string {
  if (!wasRestartedByDocker(before, now)) {
    return "its container was restarted";
  }
  return endedOutOfMemory(before) || now.container?.oomKilled === true
    ? "out of memory; restarted by Docker"
    : "it ended; restarted by Docker";
}
