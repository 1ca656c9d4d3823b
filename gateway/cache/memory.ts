import { isWithin } from "../../core/clock-jumps.ts";

/** Answers in process, bounded in bytes; the least recently used is removed first. */
export interface MemoryCache {
  get(key: string): Buffer | null;
  set(key: string, value: Buffer, ttlMs: number): void;
  remove(key: string): boolean;
  /** Returns how many entries were deleted. */
  clear(): number;
}

const MAX_BYTES = 64 * 1024 * 1024;
/** Memory of an entry in addition to its bytes. */
const ENTRY_BYTES = 200;

export function createMemoryCache(
  options: { readonly maxBytes?: number; readonly now?: () => number } = {},
): MemoryCache {
  const { maxBytes = MAX_BYTES, now = Date.now } = options;
  const entries = new Map<
    string,
    { readonly value: Buffer; readonly at: number; readonly ttlMs: number }
  >();
  let bytes = 0;

  function remove(key: string): boolean {
    const entry = entries.get(key);
    if (entry === undefined) {
      return false;
    }
    entries.delete(key);
    bytes -= entry.value.length + ENTRY_BYTES;
    return true;
  }

  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) {
        return null;
      }
      if (!isWithin(entry.at, entry.ttlMs, now())) {
        remove(key);
        return null;
      }
      entries.delete(key);
      entries.set(key, entry);
      return entry.value;
    },
    set(key, value, ttlMs) {
      remove(key);
      if (value.length + ENTRY_BYTES > maxBytes) {
        return;
      }
      entries.set(key, { value, at: now(), ttlMs });
      bytes += value.length + ENTRY_BYTES;
      for (const oldest of entries.keys()) {
        if (bytes <= maxBytes) {
          break;
        }
        remove(oldest);
      }
    },
    remove,
    clear() {
      const count = entries.size;
      entries.clear();
      bytes = 0;
      return count;
    },
  };
}
