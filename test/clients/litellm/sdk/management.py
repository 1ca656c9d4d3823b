"""The clients of LiteLLM's package for the management API of its proxy (`litellm.proxy.client`), changes on one instance, reads on the other."""

import time

from gateway import MASTER_KEY, OTHER_URL, TEXT, URL, raised, user
from litellm.proxy.client import Client
from litellm.proxy.client.exceptions import NotFoundError, UnauthorizedError
from litellm.proxy.client.health import HealthManagementClient
from litellm.proxy.client.users import UsersManagementClient

ADMIN = Client(base_url=URL, api_key=MASTER_KEY)
OTHER = Client(base_url=OTHER_URL, api_key=MASTER_KEY)


def keys():
    made = ADMIN.keys.generate(
        key_alias="of-the-client", models=["openai-chat"], duration="1h"
    )
    key = made["key"]
    assert key.startswith("sk-"), made
    info = OTHER.keys.info(key)["info"]
    assert info["key_alias"] == "of-the-client", info
    assert info["models"] == ["openai-chat"], info
    listed = OTHER.keys.list(key_alias="of-the-client", return_full_object=True)
    assert listed["total_count"] == 1, listed
    assert listed["keys"][0]["token"] == made["token"], listed
    hashes = OTHER.keys.list(page=1, size=100)["keys"]
    assert made["token"] in hashes, hashes
    ADMIN.keys.update(key, models=["anthropic-chat"])
    assert OTHER.keys.info(key)["info"]["models"] == ["anthropic-chat"]
    assert ADMIN.keys.delete(keys=[key])["deleted_keys"] == [key]
    raised(UnauthorizedError, lambda: _client(key, URL).models.list())


def _client(key, url=OTHER_URL):
    return Client(base_url=url, api_key=key)


def keys_by_alias():
    ADMIN.keys.generate(key_alias="to-delete")
    assert OTHER.keys.delete(key_aliases=["to-delete"])["deleted_keys"]
    assert OTHER.keys.list(key_alias="to-delete")["total_count"] == 0


def models():
    (example,) = [
        model
        for model in ADMIN.models.info()
        if model["model_name"] == "openai-chat"
    ]
    base = example["litellm_params"]["api_base"]
    params = {"model": "openai/gpt-5-mini", "api_base": base, "api_key": "x"}
    made = ADMIN.models.new("of-the-client", params)
    model_id = made["model_info"]["id"]
    assert made["model_id"] == model_id, made
    found = _within_a_second(lambda: OTHER.models.get(model_name="of-the-client"))
    assert found["model_info"]["id"] == model_id, found
    assert "api_key" not in found["litellm_params"], found
    names = [model["id"] for model in OTHER.models.list()]
    assert "of-the-client" in names, names
    groups = [one["model_group"] for one in OTHER.model_groups.info()]
    assert "of-the-client" in groups, groups
    params["model"] = "openai/gpt-5"
    ADMIN.models.update(model_id, params)
    found = ADMIN.models.get(model_id=model_id)
    assert found["litellm_params"]["model"] == "openai/gpt-5", found
    ADMIN.models.delete(model_id)
    raised(NotFoundError, lambda: ADMIN.models.get(model_id=model_id))
    raised(NotFoundError, lambda: ADMIN.models.delete(model_id))


def _within_a_second(read):
    """An admin's change takes effect on every instance within a second."""
    for _ in range(20):
        try:
            return read()
        except NotFoundError:
            time.sleep(0.05)
    return read()


def teams():
    ADMIN.http.request(
        "POST", "/team/new", json={"team_id": "team-1", "team_alias": "Foxes"}
    )
    assert "team-1" in [team["team_id"] for team in OTHER.teams.list()]
    page = OTHER.teams.list_v2(team_alias="Fox", page_size=5)
    assert [team["team_id"] for team in page["teams"]] == ["team-1"], page
    assert page["total"] == 1, page
    assert OTHER.teams.list_v2(team_id="team-2")["teams"] == []
    made = ADMIN.keys.generate(team_id="team-1")
    assert OTHER.keys.list(team_id="team-1")["total_count"] == 1
    assert OTHER.keys.info(made["key"])["info"]["team_id"] == "team-1"


def users():
    client = UsersManagementClient(URL, MASTER_KEY)
    other = UsersManagementClient(OTHER_URL, MASTER_KEY)
    made = client.create_user(
        {"user_email": "Fox@example.org", "user_role": "internal_user"}
    )
    user_id = made["user_id"]
    info = other.get_user(user_id)
    assert info["user_id"] == user_id, info
    assert info["user_info"]["user_email"] == "Fox@example.org", info
    listed = other.list_users({"user_email": "fox@example.org"})
    assert [one["user_id"] for one in listed] == [user_id], listed
    assert client.delete_user([user_id]) == 1
    raised(NotFoundError, lambda: client.get_user(user_id))


def chat():
    key = ADMIN.keys.generate()["key"]
    answer = _client(key).chat.completions(
        model="openai-chat", messages=user(), temperature=0.5, max_tokens=100
    )
    assert answer["choices"][0]["message"]["content"] == TEXT, answer
    chunks = _client(key).chat.completions_stream(
        model="openai-chat", messages=user()
    )
    text = "".join(
        choice["delta"].get("content") or ""
        for chunk in chunks
        for choice in chunk["choices"]
    )
    assert text == TEXT, text


def health():
    client = HealthManagementClient(URL)
    assert client.get_readiness()["status"] == "connected"
    assert client.get_server_version()


def wrong_key():
    raised(UnauthorizedError, lambda: _client("sk-unknown-key").keys.list())
