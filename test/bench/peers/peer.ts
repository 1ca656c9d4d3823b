import type { Meter } from "../meter.ts";

/** Another gateway, running without keys and without optional features. */
export interface Peer {
  readonly port: number;
  /** Sent with every call. */
  readonly headers: Readonly<Record<string, string>>;
  /** null if its cost cannot be measured on this system. */
  readonly meter: Meter | null;
  running(): boolean;
  /** Its latest output. */
  output(): string;
  stop(): Promise<void>;
}

export interface PeerOptions {
  readonly port: number;
  /** Of the mock provider. */
  readonly providerPort: number;
  /** For its files; removed at the end. */
  readonly directory: string;
}

/** How a peer is found where `scripts/toolchain.sh peers` installs it, and started. */
export interface PeerKind {
  /** Its name in sentences. */
  readonly title: string;
  /** null if it is not installed. */
  version(toolchain: string): Promise<string | null>;
  start(toolchain: string, options: PeerOptions): Peer;
}
