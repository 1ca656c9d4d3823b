/** Uncompressed speech: 24,000 samples of 16 bits a second. */
export const PCM_BYTES_PER_SECOND = 48_000;

/** Of audio whose length is to be measured. */
export const MAX_MEASURED_BYTES = 32 * 1024 * 1024;

/** Audio of a stream, in base64. */
export interface StreamedAudio {
  readonly bytes: number;
  /** All of it; empty where it is too long to be measured. */
  readonly base64: readonly string[];
}

/** Collects the audio of a stream. */
export class AudioCollector implements StreamedAudio {
  #bytes = 0;
  #base64: string[] = [];

  get bytes(): number {
    return this.#bytes;
  }

  get base64(): readonly string[] {
    return this.#base64;
  }

  add(base64: string): void {
    this.#bytes += Buffer.byteLength(base64, "base64");
    if (this.#bytes > MAX_MEASURED_BYTES) {
      this.#base64 = [];
    } else {
      this.#base64.push(base64);
    }
  }
}
