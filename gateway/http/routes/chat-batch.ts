import type { FastifyReply, FastifyRequest } from "fastify";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { teamOf } from "../../access/models.ts";
import { startRace } from "../../calls/race.ts";
import type { Gateway } from "../../gateway.ts";
import { invalidParam } from "../errors.ts";
import { passOn, sendInner, type InnerAnswer } from "../inner-request.ts";

const MAX_MODELS = 10;

/** The models of a chat that names several, separated by commas; null: one, also if an alias has a comma in its name. */
export function modelsOf(
  { catalog }: Pick<Gateway, "catalog">,
  request: FastifyRequest,
): readonly string[] | null {
  const { model } = (request.body ?? {}) as { readonly model?: unknown };
  if (typeof model !== "string" || !model.includes(",")) {
    return null;
  }
  const groups = catalog.groupsFor(teamOf(callerOf(request)));
  const isAlias = groups.some(({ alias }) => alias === model);
  return isAlias ? null : model.split(",").map((name) => name.trim());
}

/**
 * Asks several models at once and answers the list of their answers, in order; an error's body takes the place of an
 * answer that failed, and is the whole answer if all failed. Each is a call like any other, with its own id, limits and row.
 * With `fastest_response` the first answer is the whole answer, and the other calls are cancelled.
 */
export async function askSeveral(
  request: FastifyRequest,
  reply: FastifyReply,
  models: readonly string[],
): Promise<FastifyReply> {
  authorizeRoute(callerOf(request), "POST /v1/chat/completions");
  const body = request.body as Readonly<Record<string, unknown>>;
  rejectUnfit(body, models);
  return body["fastest_response"] === true
    ? answerFirst(request, reply, models)
    : answerAll(request, reply, models);
}

async function answerAll(
  request: FastifyRequest,
  reply: FastifyReply,
  models: readonly string[],
): Promise<FastifyReply> {
  const answers = await Promise.all(
    models.map((model) => askOne(request, model)),
  );
  const [first] = answers;
  const failed = answers.every(({ statusCode }) => statusCode !== 200);
  reply
    .headers(headersOf(answers.map(({ headers }) => headers)))
    .type("application/json; charset=utf-8");
  return failed && first !== undefined
    ? reply.code(first.statusCode).send(first.payload)
    : reply.send(`[${answers.map(({ payload }) => payload).join(",")}]`);
}

function rejectUnfit(
  body: Readonly<Record<string, unknown>>,
  models: readonly string[],
): void {
  if (models.length > MAX_MODELS || models.includes("")) {
    throw invalidParam(
      "model",
      `must name one model, or at most ${MAX_MODELS} separated by commas.`,
    );
  }
  if (body["stream"] === true) {
    throw invalidParam(
      "stream",
      "cannot be combined with several models in `model`: leave it out, or send a call for each model.",
    );
  }
}

/** The first answer; if all failed, the error of the model named first. */
async function answerFirst(
  request: FastifyRequest,
  reply: FastifyReply,
  models: readonly string[],
): Promise<FastifyReply> {
  const race = startRace();
  const asked = models.map((model) => askOne(request, model, race.headers));
  try {
    const first = await Promise.any(asked.map(orReject));
    return passOn(reply, first);
  } catch (error) {
    if (!(error instanceof AggregateError)) {
      throw error;
    }
    const [failed] = await Promise.all(asked);
    return failed === undefined ? reply : passOn(reply, failed);
  } finally {
    race.end();
  }
}

async function orReject(asked: Promise<InnerAnswer>): Promise<InnerAnswer> {
  const answer = await asked;
  if (answer.statusCode !== 200) {
    throw new Error(answer.payload);
  }
  return answer;
}

function askOne(
  request: FastifyRequest,
  model: string,
  more: Readonly<Record<string, string>> = {},
): Promise<InnerAnswer> {
  const body = { ...(request.body as object), model };
  return sendInner(request, "/v1/chat/completions", body, more);
}

type Headers = Readonly<Record<string, unknown>>;

const LISTED = /^x-(hearth|litellm)-(call-id|model-id|model-group)$/;
const SUMMED = ["x-hearth-cost", "x-litellm-response-cost"];

/** The ids of all calls, the sum of their costs, and the longest of the times to wait. */
function headersOf(all: readonly Headers[]): Record<string, string> {
  const names = new Set(all.flatMap((headers) => Object.keys(headers)));
  const valuesOf = (name: string) =>
    all.flatMap((headers) => {
      const value = headers[name];
      return value === undefined ? [] : [String(value)];
    });
  const joined = [...names]
    .filter((name) => LISTED.test(name))
    .map((name) => [name, valuesOf(name).join(", ")] as const);
  const summed = SUMMED.filter((name) => names.has(name)).map(
    (name) =>
      [
        name,
        String(valuesOf(name).reduce((sum, cost) => sum + Number(cost), 0)),
      ] as const,
  );
  const waits = valuesOf("retry-after").map(Number);
  return {
    ...Object.fromEntries([...joined, ...summed]),
    ...(waits.length === 0
      ? {}
      : { "retry-after": String(Math.max(...waits)) }),
  };
}
