import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { openNotesState } from "./notes-state.ts";

test("a change that could not be written has not happened: the next check sees the same difference again", () => {
  const place = temporaryHome();
  try {
    const directory = join(place.directory, "state");
    const state = openNotesState(join(directory, "notes.json"), () => {});
    expect(() => state.change("work", { instance: "2" })).toThrow("ENOENT");
    expect(state.vault("work").instance).toBeNull();
    mkdirSync(directory);
    state.change("work", { instance: "2" });
    expect(state.vault("work").instance).toBe("2");
  } finally {
    place.remove();
  }
});
