import { z } from "zod";

export const ROTATION_KINDS = [
  "postgres",
  "redis",
  "master",
  "notes",
  "provider",
] as const;

const rotation = z
  .object({
    of: z.enum(ROTATION_KINDS),
    /** New values of settings; a provider's key by its path. */
    settings: z.record(z.string(), z.string()).readonly(),
    /** The secret that the server accepts before the rotation. */
    old: z.string(),
  })
  .readonly();

export type RotationKind = (typeof ROTATION_KINDS)[number];
/** Decided at the start of a rotation. Stored, encrypted, in the stack's configuration until it is complete. */
export type Rotation = z.output<typeof rotation>;

/** A stored rotation; null if the text is none. */
export function parseRotation(text: string): Rotation | null {
  try {
    return rotation.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}
