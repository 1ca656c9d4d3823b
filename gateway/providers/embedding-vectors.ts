import { isRecord, parseRecord } from "../../core/json.ts";

/** A whole answer of `/v1/embeddings` without parsing its numbers, of which each vector has thousands. */
interface EmbeddingsAnswer {
  /** Everything but the vectors. */
  readonly rest: Readonly<Record<string, unknown>>;
  /** Each vector as JSON text, in the order of the input; null: the answer is malformed. */
  readonly vectors: readonly string[] | null;
}

/** A list of numbers, or base64; neither can contain its own start or end. */
const VECTOR = /"embedding"\s*:\s*(\[[^[\]]*\]|"[^"\\]*")/g;

/** null for bytes that are not JSON. */
export function readEmbeddings(bytes: Buffer): EmbeddingsAnswer | null {
  const found: string[] = [];
  const rest = bytes
    .toString("latin1")
    .replace(
      VECTOR,
      (_, vector: string) => `"embedding":${found.push(vector) - 1}`,
    );
  const answer = parseRecord(Buffer.from(rest, "latin1").toString("utf8"));
  return answer === null
    ? null
    : { rest: answer, vectors: inOrder(answer["data"], found) };
}

function inOrder(
  data: unknown,
  found: readonly string[],
): readonly string[] | null {
  if (!Array.isArray(data) || data.length !== found.length) {
    return null;
  }
  const vectors: string[] = [];
  for (const [place, item] of data.entries()) {
    if (!isRecord(item)) {
      return null;
    }
    const { embedding } = item;
    const vector = typeof embedding === "number" ? found[embedding] : undefined;
    if (vector === undefined) {
      return null;
    }
    vectors[typeof item["index"] === "number" ? item["index"] : place] = vector;
  }
  return Object.keys(vectors).length === data.length &&
    vectors.length === data.length
    ? vectors
    : null;
}

/** An answer of these vectors in OpenAI's shape. */
export function writeEmbeddings(
  vectors: readonly string[],
  model: string,
  tokens: number,
): Buffer {
  const data = vectors.map(
    (vector, index) =>
      `{"object":"embedding","index":${index},"embedding":${vector}}`,
  );
  return Buffer.from(
    `{"object":"list","data":[${data.join(",")}],"model":${JSON.stringify(model)},"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens}}}`,
  );
}
