"""What all themes share: the two instances, keys, prompts and failing calls."""

import json
import os

import requests

URL = os.environ["HEARTH_URL"]
OTHER_URL = os.environ["HEARTH_OTHER_URL"]
MASTER_KEY = os.environ["HEARTH_MASTER_KEY"]

TEXT = "Grüezi 🦊 mitenand!"
USAGE = {"prompt_tokens": 20, "completion_tokens": 12, "total_tokens": 32}
INPUT_PRICE = 0.000001
OUTPUT_PRICE = 0.000002
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


def admin(method, path, body=None, url=URL):
    answer = requests.request(
        method,
        url + path,
        json=body,
        headers={"Authorization": f"Bearer {MASTER_KEY}"},
        timeout=60,
    )
    assert answer.ok, (path, answer.text)
    return answer.json()


def new_key(**fields):
    return admin("POST", "/key/generate", fields)["key"]


KEY = new_key(key_alias="of-the-sdk")


def through(model, key=KEY, url=URL):
    """The arguments by which LiteLLM's SDK calls a model of its proxy."""
    return {"model": f"litellm_proxy/{model}", "api_base": url, "api_key": key}


def user(content="Hello"):
    return [{"role": "user", "content": content}]


def mock(**options):
    """A prompt that says how the provider answers (formats/mock-model.ts)."""
    return "Hello [mock]" + json.dumps(options)


def raised(kind, call):
    """The error of a call, which must be of exactly this class."""
    try:
        call()
    except Exception as error:
        assert type(error) is kind, repr(error)
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
