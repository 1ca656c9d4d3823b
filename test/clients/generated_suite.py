"""Uses a client that was generated from /openapi.json: makes a key, calls with it, asks what it used."""

import os
import time

from generated import AuthenticatedClient
from generated.api.calls import post_v1_chat_completions
from generated.api.key import get_key_list, post_key_generate
from generated.api.me import get_me_usage
from generated.models import (
    ChatCompletion,
    Error,
    NewKey,
    OwnUsage,
    PostKeyGenerateBody,
    PostV1ChatCompletionsBody,
    PostV1ChatCompletionsBodyMessagesItem,
)

address = os.environ["HEARTH_URL"]


def client_of(key: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=address, token=key)


admin = client_of(os.environ["HEARTH_MASTER_KEY"])
made = post_key_generate.sync(
    client=admin,
    body=PostKeyGenerateBody(key_alias="from-python", max_budget=5.0),
)
assert isinstance(made, NewKey), made
print("key", made.key_name, made.max_budget)

holder = client_of(made.key)
message = PostV1ChatCompletionsBodyMessagesItem.from_dict(
    {"role": "user", "content": "hello"}
)
answer = post_v1_chat_completions.sync(
    client=holder,
    body=PostV1ChatCompletionsBody(model="mock", messages=[message]),
)
assert isinstance(answer, ChatCompletion), answer
print("answer", answer.choices[0].message.content)

# A call is counted after its answer is sent.
for _ in range(200):
    usage = get_me_usage.sync(client=holder)
    assert isinstance(usage, OwnUsage), usage
    if usage.budgets[0].remaining < 5.0:
        break
    time.sleep(0.05)
print("left", usage.budgets[0].remaining < 5.0)

refused = post_key_generate.sync(
    client=admin, body=PostKeyGenerateBody(max_budget=-1.0)
)
assert isinstance(refused, Error), refused
print("refused", refused.error.param)

page = get_key_list.sync(client=admin, size=1, return_full_object=True)
print("listed", len(page.keys))
