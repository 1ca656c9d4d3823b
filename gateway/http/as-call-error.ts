import type { FastifyRequest } from "fastify";
import type { Logger } from "pino";
import {
  DatabaseUnavailable,
  STATEMENT_TIMEOUT_MS,
  StatementTooLong,
} from "../database/pool.ts";
import { JournalFull } from "../journal/journal-writer.ts";
import { conflictOf } from "./conflicts.ts";
import { CallError, databaseUnavailable } from "./errors.ts";

/** Any error of a request as it is answered; an unexpected one is logged. */
export function asCallError(
  error: unknown,
  request: FastifyRequest,
  log: Logger,
): CallError {
  if (error instanceof CallError) {
    return error;
  }
  if (error instanceof StatementTooLong) {
    return new CallError(
      "database_unavailable",
      `The database did not answer within ${STATEMENT_TIMEOUT_MS / 1_000} seconds. Choose fewer days or a narrower filter, or try again when the database is less busy.`,
    );
  }
  if (error instanceof DatabaseUnavailable) {
    return databaseUnavailable();
  }
  if (error instanceof JournalFull) {
    return new CallError(
      "journal_full",
      "The journal of calls is full or cannot be written, so calls cannot be recorded. Free disk space, check the disk or restore the database, then try again.",
      { headers: { "retry-after": "10" } },
    );
  }
  const conflict = conflictOf(error);
  if (conflict !== null) {
    return conflict;
  }
  const { code } = error as { code?: string };
  if (code?.startsWith("FST_ERR_CTP") === true) {
    return new CallError(
      "invalid_request",
      "The body could not be read. Send JSON with a correct content-length.",
    );
  }
  log.error(
    { error, route: request.routeOptions.url },
    "unexpected error in a request",
  );
  return new CallError(
    "internal",
    "Unexpected error; the log of the gateway has details. Calls without an answer are not charged.",
  );
}
