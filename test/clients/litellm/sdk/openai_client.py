"""OpenAI's SDK with what LiteLLM adds; the formats of providers are in ../../openai_suite.py."""

import asyncio

import openai
from gateway import (
    KEY,
    OTHER_URL,
    TEXT,
    URL,
    WEATHER,
    mock,
    new_key,
    raised,
    user,
)


def _client(key=KEY, url=URL, kind=openai.OpenAI, **options):
    return kind(base_url=url, api_key=key, max_retries=0, **options)


def chat_with_fields_of_litellm():
    answer = _client().chat.completions.with_raw_response.create(
        model="wrong-secret",
        messages=user(),
        extra_body={"fallbacks": ["openai-chat"], "num_retries": 0},
        extra_headers={"x-litellm-tags": "a,b"},
    )
    assert answer.parse().choices[0].message.content == TEXT
    assert answer.headers["x-litellm-attempted-fallbacks"] == "1"


def addresses_with_and_without_version():
    for url in (URL, f"{URL}/v1", f"{OTHER_URL}/v1"):
        answer = _client(url=url).chat.completions.create(
            model="openai-chat", messages=user()
        )
        assert answer.choices[0].message.content == TEXT, answer


def asynchronous_stream_with_tools():
    async def call():
        async with _client(kind=openai.AsyncOpenAI) as client:
            async with client.chat.completions.stream(
                model="anthropic-chat",
                messages=user("Weather?"),
                tools=[WEATHER],
            ) as events:
                async for _ in events:
                    pass
                final = await events.get_final_completion()
                return final.choices[0].message.tool_calls

    assert len(asyncio.run(call())) == 2


def responses_embeddings_images_moderations_and_models():
    client = _client()
    answer = client.responses.create(model="anthropic-chat", input="Hello")
    assert answer.output_text == TEXT, answer
    vectors = client.embeddings.create(model="openai-embed", input=["a", "b"])
    assert vectors.data[1].embedding == [1, 0.25, 0.5], vectors
    picture = client.images.generate(model="openai-other", prompt="A fox")
    assert picture.data[0].b64_json == "aGk=", picture
    verdict = client.moderations.create(model="openai-other", input="Hello")
    assert verdict.results[0].flagged is False, verdict
    listed = {model.id for model in client.models.list()}
    assert {"openai-chat", "anthropic-chat", "openai-embed"} <= listed, listed
    assert client.models.retrieve("openai-chat").id == "openai-chat"


def azure_client():
    client = openai.AzureOpenAI(
        azure_endpoint=URL,
        api_key=KEY,
        api_version="2026-01-01",
        max_retries=0,
    )
    answer = client.chat.completions.create(model="gemini-chat", messages=user())
    assert answer.choices[0].message.content == TEXT, answer


def error_of_a_used_up_budget_is_not_retried():
    key = new_key(max_budget=1e-9)
    client = openai.OpenAI(base_url=URL, api_key=key, max_retries=5)
    client.chat.completions.create(model="openai-chat", messages=user())
    error = raised(
        openai.BadRequestError,
        lambda: client.chat.completions.create(
            model="openai-chat", messages=user()
        ),
    )
    assert error.type == "budget_exceeded", error.body
    assert error.response.headers["x-should-retry"] == "false"


def errors_name_litellms_class():
    error = raised(
        openai.RateLimitError,
        lambda: _client().chat.completions.create(
            model="gpt-mini", messages=user(mock(status=429, retryAfter=7))
        ),
    )
    assert "litellm.RateLimitError: " in error.message, error
    assert error.response.headers["retry-after"] == "7", error.response.headers
