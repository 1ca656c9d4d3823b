"""What LiteLLM's SDK reads from the headers of its proxy: https://docs.litellm.ai/docs/proxy/response_headers"""

import litellm
from gateway import (
    INPUT_PRICE,
    OTHER_URL,
    OUTPUT_PRICE,
    mock,
    new_key,
    raised,
    through,
    user,
)

COST = 20 * INPUT_PRICE + 12 * OUTPUT_PRICE


def _headers(answer):
    """Those of the proxy, as the SDK hands them on."""
    return answer._hidden_params["additional_headers"]


def _own(headers, name):
    return headers[f"llm_provider-x-litellm-{name}"]


def cost_of_a_call():
    answer = litellm.completion(messages=user(), **through("openai-chat"))
    assert abs(answer._hidden_params["response_cost"] - COST) < 1e-12, (
        answer._hidden_params
    )
    told = float(_own(_headers(answer), "response-cost"))
    assert abs(told - COST) < 1e-12, told


def call_id_model_and_attempts():
    answer = litellm.completion(messages=user(), **through("openai-chat"))
    headers = _headers(answer)
    for name in ("call-id", "model-id"):
        assert _own(headers, name), headers
    assert _own(headers, "model-group") == "openai-chat", headers
    assert _own(headers, "attempted-retries") == "0", headers
    assert _own(headers, "attempted-fallbacks") == "0", headers


def two_calls_have_two_ids():
    ids = {
        _own(
            _headers(litellm.completion(messages=user(), **through(model))),
            "call-id",
        )
        for model in ("openai-chat", "anthropic-chat")
    }
    assert len(ids) == 2, ids


def spend_and_limits_of_the_key():
    key = new_key(max_budget=5, rpm_limit=10)
    for url, spend in ((None, 0), (OTHER_URL, COST)):
        ask = through("openai-chat", key)
        ask["api_base"] = url or ask["api_base"]
        headers = _headers(litellm.completion(messages=user(), **ask))
        assert float(_own(headers, "key-max-budget")) == 5, headers
        assert abs(float(_own(headers, "key-spend")) - spend) < 1e-12, headers
        assert headers["x-ratelimit-limit-requests"] == "10", headers


def headers_of_a_stream():
    stream = litellm.completion(
        messages=user(), stream=True, **through("openai-chat")
    )
    headers = stream._hidden_params["additional_headers"]
    assert _own(headers, "call-id"), headers
    assert list(stream)


def headers_of_an_error():
    error = raised(
        litellm.BadRequestError,
        lambda: litellm.completion(
            messages=user(mock(status=400)),
            max_retries=0,
            **through("openai-chat"),
        ),
    )
    assert error.response.headers["x-litellm-call-id"], error
    assert error.response.headers["x-litellm-model-id"], error
