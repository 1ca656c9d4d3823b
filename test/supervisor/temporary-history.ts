import { onTestFinished } from "vitest";
import { openHistory, type History } from "../../supervisor/history/history.ts";
import { temporaryHome } from "./temporary-home.ts";

/** A separate history for the current test. It is closed and removed after the hooks of its file. */
export function temporaryHistory(now?: () => number): History {
  const place = temporaryHome();
  const history = openHistory(`${place.directory}/history.db`, now);
  onTestFinished(() => {
    history.close();
    place.remove();
  });
  return history;
}
