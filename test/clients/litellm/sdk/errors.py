"""The exceptions that LiteLLM's SDK raises: https://docs.litellm.ai/docs/exception_mapping"""

import asyncio

import litellm
import openai
from gateway import OTHER_URL, mock, new_key, raised, through, user
from litellm import exceptions

BY_STATUS = {
    400: exceptions.BadRequestError,
    401: exceptions.AuthenticationError,
    403: exceptions.PermissionDeniedError,
    404: exceptions.NotFoundError,
    408: exceptions.Timeout,
    422: exceptions.UnprocessableEntityError,
    429: exceptions.RateLimitError,
    500: exceptions.InternalServerError,
    502: exceptions.BadGatewayError,
    503: exceptions.ServiceUnavailableError,
}


def _fail(kind, prompt="Hello", model="openai-chat", **options):
    args = {"messages": user(prompt), "max_retries": 0}
    args |= through(model)
    return raised(kind, lambda: litellm.completion(**(args | options)))


def provider_errors_by_status():
    for name in ("openai", "anthropic"):
        for status, kind in BY_STATUS.items():
            error = _fail(kind, mock(status=status), f"{name}-chat")
            assert error.status_code == status, error
            assert "refused with key [secret]" in str(error), error
            assert isinstance(error, openai.OpenAIError), error


def provider_error_before_a_stream():
    _fail(exceptions.RateLimitError, mock(status=429), stream=True)


def too_long_context():
    message = "This model's maximum context length is 4097 tokens."
    error = _fail(
        exceptions.ContextWindowExceededError,
        mock(status=400, message=message),
    )
    assert message in str(error), error


def content_policy():
    message = "Your request was rejected as a result of our safety system."
    _fail(
        exceptions.ContentPolicyViolationError,
        mock(status=400, message=message),
    )


def used_up_budget():
    key = new_key(max_budget=1e-9)
    litellm.completion(messages=user(), **through("openai-chat", key))
    error = _fail(exceptions.BadRequestError, api_key=key)
    assert "Budget has been exceeded! Current cost: " in str(error), error
    error = _fail(exceptions.BadRequestError, api_key=key, api_base=OTHER_URL)
    assert "Max budget: " in str(error), error


def own_rate_limit_on_both_instances():
    key = new_key(rpm_limit=1)
    litellm.completion(messages=user(), **through("openai-chat", key))
    error = _fail(exceptions.RateLimitError, api_key=key, api_base=OTHER_URL)
    assert int(error.response.headers["retry-after"]) > 0, error
    limit = error.response.headers["x-ratelimit-limit-requests"]
    assert limit == "1", error.response.headers


def unknown_key():
    error = _fail(exceptions.AuthenticationError, api_key="sk-unknown-key")
    assert "unknown-key" not in str(error), error


def model_that_the_key_may_not_use():
    key = new_key(models=["anthropic-chat"])
    error = _fail(exceptions.PermissionDeniedError, api_key=key)
    assert "key not allowed to access model" in str(error), error


def unknown_model():
    error = _fail(exceptions.BadRequestError, model="no-such-model")
    assert "Invalid model name passed in model=no-such-model" in str(error)


def pending_model():
    error = _fail(exceptions.ServiceUnavailableError, model="pending")
    assert "NOBODY_SETS_THIS" in str(error), error


def callers_own_timeout():
    """The SDK gives up; the timeout of the gateway (`x-litellm-timeout`) answers by itself."""
    slow = mock(delayMs=5000)
    _fail(exceptions.Timeout, slow, timeout=0.5)
    error = _fail(
        exceptions.Timeout, slow, extra_headers={"x-litellm-timeout": "0.2"}
    )
    assert error.status_code == 408, error


def asynchronous_error():
    async def call():
        await litellm.acompletion(
            messages=user(mock(status=401)),
            max_retries=0,
            **through("openai-chat"),
        )

    raised(exceptions.AuthenticationError, lambda: asyncio.run(call()))


def embedding_error():
    raised(
        exceptions.BadRequestError,
        lambda: litellm.embedding(
            input=["one"], max_retries=0, **through("no-such-model")
        ),
    )
