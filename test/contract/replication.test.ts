import { afterAll, beforeAll, expect, test } from "vitest";
import { newDevice, remote, type Device } from "./devices.ts";
import { admin, ask, startNotes, type NotesProcess } from "./start-notes.ts";
import { waitFor } from "../wait-for.ts";

let notes: NotesProcess;

beforeAll(async () => {
  notes = await startNotes();
});

afterAll(async () => {
  await notes.stop();
});

test("two devices replicate live through the store", async () => {
  await ask(`${notes.url}/vault`, { method: "PUT" });
  const [phone, laptop] = [newDevice(), newDevice()];
  const syncs = [phone, laptop].map((device) =>
    device.sync(remote(notes.url, "vault", admin), { live: true, retry: true }),
  );
  try {
    await phone.put({ _id: "notes/one.md", type: "plain", text: "from phone" });
    const onLaptop = await arrived(laptop, "notes/one.md", "from phone");
    await laptop.put({ ...onLaptop, text: "from laptop" });
    await arrived(phone, "notes/one.md", "from laptop");
    const last = await phone.get("notes/one.md");
    await phone.remove(last._id, last._rev!);
    await waitFor("the deletion on the laptop", async () => {
      const missing = await laptop
        .get("notes/one.md")
        .then(() => undefined)
        .catch((failure: { status: number }) => failure);
      return missing?.status === 404;
    });
  } finally {
    for (const sync of syncs) {
      sync.cancel();
    }
    await Promise.all([phone.destroy(), laptop.destroy()]);
  }
});

test("edits of one note on two devices become a conflict on both, and resolving it on one device resolves it on both", async () => {
  await ask(`${notes.url}/conflicted`, { method: "PUT" });
  const server = remote(notes.url, "conflicted", admin);
  const [phone, laptop] = [newDevice(), newDevice()];
  const syncAll = async (): Promise<void> => {
    for (const device of [phone, laptop, phone]) {
      await device.sync(server);
    }
  };
  const first = await phone.put({ _id: "n", text: "base" });
  await syncAll();
  await phone.put({ _id: "n", _rev: first.rev, text: "phone" });
  await laptop.put({ _id: "n", _rev: first.rev, text: "laptop" });
  await syncAll();
  const [seenByPhone, seenByLaptop, seenByServer] = await Promise.all(
    [phone, laptop, server].map((each) => each.get("n", { conflicts: true })),
  );
  expect(seenByPhone).toEqual(seenByLaptop);
  expect(seenByServer).toEqual(seenByLaptop);
  expect(seenByPhone?._conflicts).toHaveLength(1);
  await laptop.remove("n", seenByLaptop!._conflicts![0]!);
  await syncAll();
  for (const each of [phone, laptop, server]) {
    const resolved = await each.get("n", { conflicts: true });
    expect(resolved._conflicts).toBeUndefined();
    expect(resolved._rev).toBe(seenByPhone?._rev);
  }
  await Promise.all([phone.destroy(), laptop.destroy()]);
});

async function arrived(device: Device, id: string, text: string) {
  return await waitFor(`"${text}" on another device`, async () => {
    const found = await device.get(id).catch(() => undefined);
    return found?.text === text ? found : undefined;
  });
}
