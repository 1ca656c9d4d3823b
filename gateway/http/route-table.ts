import { ADMIN_ROUTES } from "../admin/routes.ts";
import type { OpenRoute, Route } from "./route.ts";
import {
  deleteFromCache,
  flushCache,
  pingCache,
  redisInfo,
} from "./routes/cache.ts";
import { chatCompletions } from "./routes/chat.ts";
import { completions } from "./routes/completions.ts";
import { checkConfig, reloadConfig } from "./routes/config.ts";
import { contents } from "./routes/contents.ts";
import { embeddings } from "./routes/embeddings.ts";
import { applyGuardrail, listGuardrails } from "./routes/guardrails.ts";
import { health, liveliness, readiness } from "./routes/health.ts";
import { healthServices } from "./routes/health-services.ts";
import { imageEdits, imageVariations } from "./routes/image-edits.ts";
import { images } from "./routes/images.ts";
import { countTokens, messages } from "./routes/messages.ts";
import { metrics } from "./routes/metrics.ts";
import { listModels, showModel } from "./routes/models.ts";
import { moderations } from "./routes/moderations.ts";
import { rerank } from "./routes/rerank.ts";
import { compactResponse } from "./routes/responses-compact.ts";
import { inputTokens } from "./routes/responses-input-tokens.ts";
import { responsesSocket } from "./routes/responses-socket.ts";
import { responses } from "./routes/responses.ts";
import {
  createConversation,
  createItems,
  deleteConversation,
  deleteItem,
  getConversation,
  getItem,
  listItems,
  updateConversation,
} from "./routes/conversations.ts";
import {
  cancelResponse,
  deleteResponse,
  getResponse,
  listInputItems,
} from "./routes/stored-responses.ts";
import { supportedParams } from "./routes/supported-params.ts";
import { tokenCounter } from "./routes/token-counter.ts";
import { speech } from "./routes/speech.ts";
import { transcriptions, translations } from "./routes/transcriptions.ts";

/** Every route that needs a key. */
export const ROUTES: readonly Route[] = [
  chatCompletions,
  completions,
  embeddings,
  responses,
  responsesSocket,
  inputTokens,
  compactResponse,
  getResponse,
  deleteResponse,
  listInputItems,
  cancelResponse,
  createConversation,
  getConversation,
  updateConversation,
  deleteConversation,
  createItems,
  listItems,
  getItem,
  deleteItem,
  moderations,
  images,
  imageEdits,
  imageVariations,
  rerank,
  speech,
  transcriptions,
  translations,
  messages,
  countTokens,
  contents,
  listModels,
  showModel,
  tokenCounter,
  supportedParams,
  listGuardrails,
  applyGuardrail,
  ...ADMIN_ROUTES,
  health,
  healthServices,
  metrics,
  pingCache,
  redisInfo,
  deleteFromCache,
  flushCache,
  checkConfig,
  reloadConfig,
];

/** Every documented route that needs none. */
export const OPEN_ROUTES: readonly OpenRoute[] = [liveliness, readiness];
