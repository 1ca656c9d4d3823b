import { loadEncoding, type CountTokens, type Encoding } from "./byte-pairs.ts";

const CL100K =
  /(^|\/)(gpt-3\.5|gpt-35|gpt-4(?![.o\d])|text-embedding-|davinci-002|babbage-002)/;

/**
 * The encoding used for a model; those of other providers are close to the newer one, and a learnt margin covers the
 * rest.
 */
export function encodingOf(model: string): Encoding {
  return CL100K.test(model) ? "cl100k_base" : "o200k_base";
}

/** Texts up to this many characters are counted whole, longer ones from samples that are spread over them. */
interface Sampling {
  readonly exactUpTo: number;
  readonly samples: number;
  readonly sampleLength: number;
}

const FOR_ESTIMATES: Sampling = {
  exactUpTo: 8_000,
  samples: 24,
  sampleLength: 256,
};
/** Of estimates, so that they lie above the true count of ordinary text. */
const SAMPLED_RAISE = 1.1;
/** Twice the longest answers. A provider that never ends one would otherwise stop all other calls for minutes. */
const FOR_BILLS: Sampling = {
  exactUpTo: 1_000_000,
  samples: 500,
  sampleLength: 2_000,
};

/**
 * Counts tokens with encodings that are loaded on first use (4 MB and an eighth of a second for the larger one, in pieces
 * between which other calls are served). Until one is loaded, its counts are upper bounds by size.
 */
interface Tokenizers {
  /** A cheap count: exact up to 8,000 characters, above that a slightly high estimate. */
  estimate(text: string, encoding: Encoding): number;
  /** Exact except for about one token per thousand characters; above a million characters, by as many of them. */
  count(text: string, encoding: Encoding): number;
  load(encoding: Encoding): Promise<void>;
}

export function createTokenizers(): Tokenizers {
  const loaded = new Map<Encoding, CountTokens>();
  const loading = new Map<Encoding, Promise<void>>();

  function load(encoding: Encoding): Promise<void> {
    let promise = loading.get(encoding);
    if (promise === undefined) {
      promise = loadEncoding(encoding).then((count) => {
        loaded.set(encoding, count);
      });
      loading.set(encoding, promise);
    }
    return promise;
  }

  function tokenizer(encoding: Encoding): CountTokens | null {
    const count = loaded.get(encoding);
    if (count === undefined) {
      void load(encoding);
    }
    return count ?? null;
  }

  return {
    load,
    estimate(text, encoding) {
      if (text === "") {
        return 0;
      }
      const count = tokenizer(encoding);
      if (count === null) {
        return boundBySize(text);
      }
      return text.length <= FOR_ESTIMATES.exactUpTo
        ? countInSlices(text, count)
        : Math.ceil(
            countFromSamples(text, count, FOR_ESTIMATES) * SAMPLED_RAISE,
          );
    },
    count(text, encoding) {
      const count = tokenizer(encoding);
      if (count === null) {
        return boundBySize(text);
      }
      return text.length <= FOR_BILLS.exactUpTo
        ? countInSlices(text, count)
        : Math.ceil(countFromSamples(text, count, FOR_BILLS));
    },
  };
}

/** Half the UTF-8 bytes: prose has four bytes a token, code and Chinese three, JSON and markup two and a half. */
function boundBySize(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 2);
}

const SLICE = 1_024;
const SLICE_WITHOUT_SPACE = 256;

/**
 * Byte-pair merging takes quadratic time in the length of a run without spaces (50,000 times "a": over a second),
 * so no more than a slice is given to it at once. A slice ends before a space where there is one, which changes nothing.
 */
function countInSlices(text: string, count: CountTokens): number {
  if (text.length <= SLICE_WITHOUT_SPACE) {
    return count(text);
  }
  let tokens = 0;
  let start = 0;
  while (start < text.length) {
    const end = sliceEnd(text, start);
    tokens += count(text.slice(start, end));
    start = end;
  }
  return tokens;
}

function sliceEnd(text: string, start: number): number {
  if (text.length - start <= SLICE_WITHOUT_SPACE) {
    return text.length;
  }
  // Only within the slice: `lastIndexOf` on the whole text would search back to its start for each slice.
  const space = start + text.slice(start, start + SLICE + 1).lastIndexOf(" ");
  const spaced =
    space > start && longestRun(text, start, space) <= SLICE_WITHOUT_SPACE;
  const end = spaced ? space : start + SLICE_WITHOUT_SPACE;
  return splitsPair(text, end) ? end + 1 : end;
}

/** The longest stretch without a space between two positions; gives up as soon as it is too long. */
function longestRun(text: string, start: number, end: number): number {
  let longest = 0;
  let position = start;
  while (position < end && longest <= SLICE_WITHOUT_SPACE) {
    const found = text.indexOf(" ", position);
    const next = found < 0 || found > end ? end : found;
    longest = Math.max(longest, next - position);
    position = next + 1;
  }
  return longest;
}

/** Whether a cut at `index` would split a surrogate pair. */
function splitsPair(text: string, index: number): boolean {
  const before = text.charCodeAt(index - 1);
  return before >= 0xd800 && before <= 0xdbff;
}

function countFromSamples(
  text: string,
  count: CountTokens,
  { samples, sampleLength }: Sampling,
): number {
  const step = (text.length - sampleLength) / (samples - 1);
  let tokens = 0;
  for (let sample = 0; sample < samples; sample++) {
    const start = Math.floor(sample * step);
    tokens += countInSlices(text.slice(start, start + sampleLength), count);
  }
  return (text.length * tokens) / (samples * sampleLength);
}
