"""LiteLLM's command `lite`, in this process: https://docs.litellm.ai/docs/proxy/management_cli"""

import json

from click.testing import CliRunner
from gateway import MASTER_KEY, OTHER_URL, URL
from litellm.proxy.client.cli.main import cli


def _lite(*arguments, url=URL):
    result = CliRunner(env={"COLUMNS": "250"}).invoke(
        cli, ["--base-url", url, "--api-key", MASTER_KEY, *arguments]
    )
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    return result.output


def keys():
    made = json.loads(
        _lite("keys", "generate", "--key-alias", "lite", "--models", "openai-chat")
    )
    listed = json.loads(
        _lite("keys", "list", "--key-alias", "lite", "--format", "json", url=OTHER_URL)
    )
    assert listed["total_count"] == 1, listed
    assert "lite" in _lite("keys", "list", "--key-alias", "lite")
    _lite("keys", "delete", "--keys", made["key"])
    listed = json.loads(
        _lite("keys", "list", "--key-alias", "lite", "--format", "json")
    )
    assert listed["total_count"] == 0, listed


def keys_of_one_gateway_into_the_other():
    source = ("--source-base-url", OTHER_URL, "--source-api-key", MASTER_KEY)
    output = _lite("keys", "import", *source, "--dry-run")
    assert "of-the-sdk" in output, output


def models():
    add = ("models", "add", "of-lite", "-p", "model=openai/gpt-5-mini")
    _lite(*add, "-p", "api_key=x", "-i", "mode=chat")
    found = json.loads(_lite("models", "get", "--name", "of-lite"))
    model_id = found["model_info"]["id"]
    assert "of-lite" in _lite("models", "list")
    assert "of-lite" in _lite("models", "info", "--format", "table")
    assert "of-lite" in _lite("model-groups", "list")
    _lite("models", "update", model_id, "-p", "model=openai/gpt-5")
    _lite("models", "delete", model_id)
    assert "of-lite" not in _lite("models", "list")


def users():
    output = _lite("users", "create", "--email", "lite@example.org")
    made = json.loads(output)
    assert "lite@example.org" in _lite("users", "list", url=OTHER_URL)
    info = json.loads(_lite("users", "get", "--id", made["user_id"]))
    assert info["user_info"]["user_email"] == "lite@example.org", info
    _lite("users", "delete", made["user_id"])
    assert "lite@example.org" not in _lite("users", "list", url=OTHER_URL)


def teams():
    body = json.dumps({"team_id": "of-lite", "team_alias": "Team of lite"})
    _lite("http", "request", "POST", "/team/new", "--json", body)
    assert "Team of lite" in _lite("teams", "list", url=OTHER_URL)


def version():
    assert URL in _lite("version")
