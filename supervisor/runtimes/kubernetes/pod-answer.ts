import { z } from "zod";

/** Milliseconds since 1970. */
const time = z
  .string()
  .nullish()
  .transform((text) => (text == null ? undefined : Date.parse(text)));

const terminated = z.object({
  exitCode: z.number(),
  reason: z.string().optional(),
  message: z.string().optional(),
  startedAt: time,
  finishedAt: time,
});

const containerStatus = z.object({
  name: z.string(),
  image: z.string().default(""),
  ready: z.boolean(),
  restartCount: z.number(),
  state: z
    .object({
      waiting: z
        .object({
          reason: z.string().optional(),
          message: z.string().optional(),
        })
        .optional(),
      running: z.object({ startedAt: time }).optional(),
      terminated: terminated.optional(),
    })
    .default({}),
  lastState: z.object({ terminated: terminated.optional() }).default({}),
});

const condition = z.object({
  type: z.string(),
  status: z.string(),
  message: z.string().optional(),
  lastTransitionTime: time,
});

const pod = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    creationTimestamp: time,
    deletionTimestamp: time,
    deletionGracePeriodSeconds: z.number().default(0),
    labels: z.record(z.string(), z.string()).default({}),
    ownerReferences: z
      .array(
        z.object({
          kind: z.string(),
          name: z.string(),
          controller: z.boolean().optional(),
        }),
      )
      .default([]),
  }),
  spec: z.object({
    nodeName: z.string().optional(),
    restartPolicy: z.string().default("Always"),
    containers: z.array(
      z.object({
        name: z.string(),
        image: z.string(),
        ports: z.array(z.object({ containerPort: z.number() })).default([]),
      }),
    ),
  }),
  status: z.object({
    phase: z.string().default("Pending"),
    reason: z.string().optional(),
    message: z.string().optional(),
    podIP: z.string().optional(),
    conditions: z.array(condition).default([]),
    initContainerStatuses: z.array(containerStatus).default([]),
    containerStatuses: z.array(containerStatus).default([]),
  }),
});

const podList = z.object({ items: z.array(pod) });

/**
 * The fields of a pod that the supervisor uses: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
 */
export type Pod = Readonly<z.output<typeof pod>>;
export type ContainerStatus = Readonly<z.output<typeof containerStatus>>;
export type Terminated = Readonly<z.output<typeof terminated>>;

/** The pods in the API's answer, a PodList. */
export function parsePods(answer: string): readonly Pod[] {
  return podList.parse(JSON.parse(answer)).items;
}
