import {
  info,
  overview,
  putRevsLimit,
  putSecurity,
  revsLimit,
} from "./administration.ts";
import { allDocs } from "./all-docs.ts";
import type { Answer } from "./answer.ts";
import { bulkDocs } from "./bulk-docs.ts";
import { bulkGet } from "./bulk-get.ts";
import { changes } from "./changes.ts";
import { collect } from "./collect.ts";
import { compact } from "./compaction.ts";
import { find } from "./find.ts";
import { history } from "./history.ts";
import {
  deleteLocal,
  getLocal,
  localDocs,
  putLocal,
} from "./local-documents.ts";
import type { OperationName, StoreRequest } from "./protocol.ts";
import { getDocument } from "./read-document.ts";
import { revsDiff } from "./revs-diff.ts";
import { space } from "./space.ts";
import type { Store } from "./store.ts";
import { deleteDocument, postDocument, putDocument } from "./write-document.ts";

type Operation = (
  store: Store,
  request: StoreRequest,
) => Answer | Promise<Answer>;

/** All operations of a database's worker. */
export const operations: Readonly<Record<OperationName, Operation>> = {
  allDocs,
  bulkDocs,
  bulkGet,
  changes,
  collect,
  compact,
  deleteDocument,
  deleteLocal,
  find,
  getDocument,
  getLocal,
  history,
  info,
  localDocs,
  overview,
  postDocument,
  putDocument,
  putLocal,
  putRevsLimit,
  putSecurity,
  revsDiff,
  revsLimit,
  space,
};
