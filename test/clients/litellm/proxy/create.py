"""LiteLLM's own proxy, in this process: creates through its API what the importer reads: the calls on standard input."""

import asyncio
import json
import os
import sys

import httpx
from litellm.proxy import proxy_server


async def main():
    requests = json.loads(sys.stdin.read())
    app = proxy_server.app
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app=app)
        headers = {"Authorization": f"Bearer {os.environ['LITELLM_MASTER_KEY']}"}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://litellm", headers=headers
        ) as client:
            for path, body in requests:
                answer = await client.post(path, json=body)
                if answer.status_code != 200:
                    raise SystemExit(f"{path}: {answer.status_code} {answer.text}")


asyncio.run(main())
