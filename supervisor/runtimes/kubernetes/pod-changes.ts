import type { History } from "../../history/history.ts";
import type { ServiceState, ServiceView } from "../runtime.ts";

export interface PodEvents {
  readonly history: History;
  readonly onChange: (view: ServiceView, before: ServiceState) => void;
}

/** Records what Kubernetes has done since the previous list: pods created, restarted, replaced and deleted. */
export function recordPodChanges(
  before: readonly ServiceView[],
  now: readonly ServiceView[],
  events: PodEvents,
): void {
  const { history } = events;
  const left = new Map(before.map((view) => [view.name, view]));
  for (const view of now) {
    const earlier = left.get(view.name);
    left.delete(view.name);
    if (earlier === undefined) {
      history.act(view.name, "start", "created by Kubernetes");
    } else if (earlier.pod?.uid !== view.pod?.uid) {
      history.act(view.name, "start", "replaced by a new pod");
    } else if (view.restarts > earlier.restarts) {
      const how = view.pod?.lastEnd?.text ?? "it ended";
      history.act(view.name, "restart", `${how}; restarted by the kubelet`);
    }
    notify(view, earlier?.state ?? "stopped", events);
  }
  for (const view of left.values()) {
    const reason = "deleted by Kubernetes";
    notify({ ...view, state: "stopped", reason }, view.state, events);
  }
}

function notify(
  view: ServiceView,
  before: ServiceState,
  { history, onChange }: PodEvents,
): void {
  if (view.state !== before) {
    history.serviceChanged(view.name, before, view.state, view.reason);
    onChange(view, before);
  }
}
