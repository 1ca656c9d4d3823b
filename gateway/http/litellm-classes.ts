/** The classes of LiteLLM's exceptions by status, as its documentation of errors lists them. */
const CLASSES: Readonly<Record<number, string>> = {
  400: "BadRequestError",
  401: "AuthenticationError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  408: "Timeout",
  413: "BadRequestError",
  422: "UnprocessableEntityError",
  429: "RateLimitError",
  500: "InternalServerError",
  502: "BadGatewayError",
  503: "ServiceUnavailableError",
};

/** LiteLLM's class of a provider's error: `RateLimitError` for 429. */
export function litellmClassOf(status: number): string {
  return CLASSES[status] ?? "APIError";
}
