import { expect, test } from "vitest";
import {
  podList,
  sampleContainer,
  sampleEnd,
  samplePod,
} from "../../../test/supervisor/pod-samples.ts";
import { readPods } from "./pod-view.ts";
import { describePod } from "./pod-words.ts";

test("a pod in words: images without registry, digests shortened", () => {
  const [view] = readPods(
    podList([
      samplePod("a", {
        spec: {
          containers: [
            { name: "gateway", image: "registry.example:5000/gateway:1.2.0" },
            {
              name: "proxy",
              image: `proxy@sha256:${"0123456789ab".repeat(5)}0000`,
            },
          ],
        },
        status: {
          containerStatuses: [
            sampleContainer("gateway", {
              restartCount: 1,
              lastState: sampleEnd("OOMKilled", 137),
            }),
          ],
        },
      }),
    ]),
    0,
  );
  const pod = view?.pod ?? expect.fail();
  expect(describePod(pod, Date.parse("2026-11-24T10:25:00Z"))).toEqual({
    ready: "1/2",
    node: "node-1",
    images: ["gateway:1.2.0", "proxy@sha256:0123456789ab…"],
    lastEnd: "killed: out of memory, 5 min ago",
  });
  expect(describePod({ ...pod, node: null, lastEnd: null }, 0)).toMatchObject({
    node: "not scheduled",
    lastEnd: "",
  });
});
