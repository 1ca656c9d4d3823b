"""OpenAI's own client against a gateway: HEARTH_URL, HEARTH_KEY, and the provider formats as arguments."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import openai

FORMATS = sys.argv[1:]
TEXT = "Grüezi 🦊 mitenand!"
CITIES = ["Zürich", "Genève"]
IMAGE = "data:image/png;base64,aGk="
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
ERRORS = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
}


def client_of(key=os.environ["HEARTH_KEY"], max_retries=0):
    url = os.environ["HEARTH_URL"] + "/v1"
    return openai.OpenAI(base_url=url, api_key=key, max_retries=max_retries)


def user(content):
    return [{"role": "user", "content": content}]


def mock_prompt(**options):
    return "Hello [mock]" + json.dumps(options)


def cities_in(calls):
    return [json.loads(call.function.arguments)["city"] for call in calls]


def chat(client, model):
    answer = client.chat.completions.create(model=model, messages=user("Hello"))
    assert answer.choices[0].message.content == TEXT, answer
    assert answer.usage.completion_tokens == 12, answer


def stream(client, model):
    chunks = client.chat.completions.create(
        model=model, messages=user("Hello"), stream=True
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == TEXT, deltas


def tools(client, model):
    ask = {"model": model, "messages": user("Weather?"), "tools": [WEATHER]}
    whole = client.chat.completions.create(**ask).choices[0].message
    assert cities_in(whole.tool_calls) == CITIES, whole
    with client.chat.completions.stream(**ask) as events:
        for _ in events:
            pass
        streamed = events.get_final_completion().choices[0].message
    assert cities_in(streamed.tool_calls) == CITIES, streamed
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        for call in whole.tool_calls
    ]
    ask["messages"] = [*ask["messages"], whole, *results]
    answer = client.chat.completions.create(**ask)
    assert answer.choices[0].message.content == "Weather: sunny, sunny", answer


def json_mode(client, model):
    answer = client.chat.completions.create(
        model=model,
        messages=user("A city, as JSON"),
        response_format={"type": "json_object"},
    )
    assert json.loads(answer.choices[0].message.content)["city"] == "Zürich"


def image(client, model):
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": IMAGE}},
    ]
    answer = client.chat.completions.create(model=model, messages=user(content))
    assert answer.choices[0].message.content == "I see image/png", answer


def responses(client, model):
    answer = client.responses.create(model=model, input="Hello")
    assert answer.output_text == TEXT, answer
    with client.responses.stream(model=model, input="Hello") as events:
        for _ in events:
            pass
        assert events.get_final_response().output_text == TEXT


def errors(client, model):
    for status, kind in ERRORS.items():
        prompt = mock_prompt(status=status, suite="python")
        try:
            client.chat.completions.create(model=model, messages=user(prompt))
            raise AssertionError(f"{status} was not raised")
        except openai.APIStatusError as error:
            assert type(error) is kind, error
            assert "refused with key [secret]" in error.message, error


def retries(model):
    prompt = mock_prompt(status=429, failures=1, retryAfter=1, suite="python")
    started = time.monotonic()
    answer = client_of(max_retries=2).chat.completions.create(
        model=model, messages=user(prompt)
    )
    assert answer.choices[0].message.content == TEXT, answer
    # Without retry-after it waits at most half a second.
    assert time.monotonic() - started > 0.9


def embeddings(client, model):
    answer = client.embeddings.create(model=model, input=["one", "two"])
    assert answer.data[1].embedding == [1, 0.25, 0.5], answer


# One for all: each reads the certificates of this machine again.
CLIENT = client_of()


def run(check, model):
    check(CLIENT, model)
    print(f"{model}: {check.__name__}")


for name in FORMATS:
    for check in [
        chat,
        stream,
        tools,
        json_mode,
        image,
        responses,
        errors,
    ]:
        run(check, f"{name}-chat")
    if name != "anthropic":
        run(embeddings, f"{name}-embed")

# At the same time: each waits a second.
with ThreadPoolExecutor() as threads:
    chats = [f"{name}-chat" for name in FORMATS]
    for name, _ in zip(chats, threads.map(retries, chats)):
        print(f"{name}: retries")

try:
    client_of("sk-unknown-key").models.list()
    raise AssertionError("an unknown key was taken")
except openai.AuthenticationError as error:
    assert error.type == "token_not_found_in_db", error
