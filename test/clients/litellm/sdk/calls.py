"""Calls of LiteLLM's SDK with the provider `litellm_proxy`: https://docs.litellm.ai/docs/providers/litellm_proxy"""

import asyncio
import json
import os
import time

import litellm
from gateway import (
    INPUT_PRICE,
    KEY,
    OTHER_URL,
    OUTPUT_PRICE,
    TEXT,
    URL,
    USAGE,
    WEATHER,
    admin,
    new_key,
    through,
    user,
)

FORMATS = ["openai", "anthropic", "gemini", "azure"]


def chat_through_every_format():
    for name in FORMATS:
        answer = litellm.completion(messages=user(), **through(f"{name}-chat"))
        assert answer.choices[0].message.content == TEXT, answer
        assert answer.choices[0].finish_reason == "stop", answer
        for field, count in USAGE.items():
            assert answer.usage[field] == count, answer


def streams_through_every_format():
    for name in FORMATS:
        stream = litellm.completion(
            messages=user(),
            stream=True,
            stream_options={"include_usage": True},
            **through(f"{name}-chat"),
        )
        whole = litellm.stream_chunk_builder(list(stream), messages=user())
        assert whole.choices[0].message.content == TEXT, whole
        for field, count in USAGE.items():
            assert whole.usage[field] == count, whole


def asynchronous_calls_on_both_instances():
    async def all_at_once():
        answers = await asyncio.gather(
            *(
                litellm.acompletion(
                    messages=user(), **through("openai-chat", url=url)
                )
                for url in (URL, OTHER_URL)
            )
        )
        assert [one.choices[0].message.content for one in answers] == [TEXT] * 2
        stream = await litellm.acompletion(
            messages=user(), stream=True, **through("anthropic-chat")
        )
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(pieces) == TEXT, pieces
        vectors = await litellm.aembedding(
            input=["one", "two"], **through("openai-embed")
        )
        assert len(vectors.data) == 2, vectors

    asyncio.run(all_at_once())


def tools_through_every_format():
    for name in FORMATS:
        ask = {"messages": user("Weather?"), "tools": [WEATHER]}
        ask |= through(f"{name}-chat")
        message = litellm.completion(**ask).choices[0].message
        streamed = litellm.completion(**ask, stream=True)
        again = litellm.stream_chunk_builder(list(streamed)).choices[0].message
        for each in (message, again):
            cities = [
                json.loads(call.function.arguments)["city"]
                for call in each.tool_calls
            ]
            assert cities == ["Zürich", "Genève"], each
        ask["messages"] += [
            message.model_dump(exclude_none=True),
            *(
                {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
                for call in message.tool_calls
            ),
        ]
        answer = litellm.completion(**ask).choices[0].message.content
        assert answer == "Weather: sunny, sunny", answer


def json_and_images():
    answer = litellm.completion(
        messages=user("A city, as JSON"),
        response_format={"type": "json_object"},
        **through("anthropic-chat"),
    )
    assert json.loads(answer.choices[0].message.content)["city"] == "Zürich"
    content = [
        {"type": "text", "text": "What is this?"},
        {
            "type": "image_url",
            "image_url": {"url": "data:image/png;base64,aGk="},
        },
    ]
    answer = litellm.completion(
        messages=user(content), **through("gemini-chat")
    )
    assert answer.choices[0].message.content == "I see image/png", answer


def embeddings():
    for name in ("openai", "gemini", "azure"):
        answer = litellm.embedding(
            input=["one", "two"], **through(f"{name}-embed")
        )
        assert answer.data[1]["embedding"] == [1, 0.25, 0.5], answer
        assert answer.usage.prompt_tokens == 5, answer


def images():
    answer = litellm.image_generation(
        prompt="A fox", **through("openai-other")
    )
    assert answer.data[0].b64_json == "aGk=", answer


def moderation():
    answer = litellm.moderation(
        input="Hello",
        model="openai-other",
        api_base=f"{URL}/v1",
        api_key=KEY,
        custom_llm_provider="openai",
    )
    assert answer.results[0].flagged is False, answer


def text_completion():
    answer = litellm.text_completion(prompt="Hello", **through("openai-chat"))
    assert answer.choices[0].text == TEXT, answer


def responses():
    for name in ("openai", "anthropic"):
        answer = litellm.responses(input="Hello", **through(f"{name}-chat"))
        assert answer.output[-1].content[0].text == TEXT, answer
        events = list(
            litellm.responses(
                input="Hello", stream=True, **through(f"{name}-chat")
            )
        )
        assert events[-1].type == "response.completed", events
        assert events[-1].response.output[-1].content[0].text == TEXT, events


def anthropic_messages():
    async def one():
        return await litellm.anthropic.messages.acreate(
            model="anthropic/openai-chat",
            api_base=URL,
            api_key=KEY,
            max_tokens=100,
            messages=user(),
        )

    answer = asyncio.run(one())
    assert answer["content"][0]["text"] == TEXT, answer


def models_of_a_key():
    key = new_key(models=["openai-chat", "anthropic-chat"])
    names = litellm.LiteLLMProxyChatConfig().get_models(
        api_key=key, api_base=URL
    )
    assert set(names) == {
        "litellm_proxy/openai-chat",
        "litellm_proxy/anthropic-chat",
    }, names


def every_model_through_the_proxy_by_a_setting():
    """`USE_LITELLM_PROXY` sends names of any provider to the proxy."""
    settings = {
        "USE_LITELLM_PROXY": "True",
        "LITELLM_PROXY_API_BASE": URL,
        "LITELLM_PROXY_API_KEY": KEY,
    }
    os.environ.update(settings)
    try:
        answer = litellm.completion(model="gemini-chat", messages=user())
        assert answer.choices[0].message.content == TEXT, answer
    finally:
        for name in settings:
            del os.environ[name]


def router_over_both_instances():
    """The SDK's own router, which goes on with the second where the first fails."""
    router = litellm.Router(
        model_list=[
            {
                "model_name": "first",
                "litellm_params": through("wrong-secret"),
            },
            {
                "model_name": "second",
                "litellm_params": through("openai-chat", url=OTHER_URL),
            },
        ],
        fallbacks=[{"first": ["second"]}],
        num_retries=0,
    )
    answer = router.completion(model="first", messages=user())
    assert answer.choices[0].message.content == TEXT, answer


def fields_for_the_gateway():
    """Tags, end user and session reach the spend row, as seen by the other instance; fallbacks take effect."""
    key = new_key()
    answer = litellm.completion(
        messages=user(),
        user="customer-of-the-sdk",
        extra_body={
            "metadata": {"tags": ["from-python"]},
            "litellm_session_id": "session-of-the-sdk",
            "fallbacks": ["anthropic-chat"],
        },
        **through("wrong-secret", key),
    )
    assert answer.choices[0].message.content == TEXT, answer
    cost = 20 * INPUT_PRICE + 12 * OUTPUT_PRICE
    (row,) = _spend_rows(key)
    assert row["model"] == "claude-sonnet-4-5", row
    assert row["end_user"] == "customer-of-the-sdk", row
    assert row["session_id"] == "session-of-the-sdk", row
    assert "from-python" in row["request_tags"], row
    assert abs(row["spend"] - cost) < 1e-12, row


def _spend_rows(key):
    """The rows of a key's calls, once they are written."""
    for _ in range(100):
        rows = admin("GET", f"/spend/logs?api_key={key}", url=OTHER_URL)
        if rows:
            return rows
        time.sleep(0.1)
    raise AssertionError("no row was written")
