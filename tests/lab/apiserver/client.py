"""A small JSON client, so that tests read as what a Kubernetes client would do."""

import json
from typing import Any, Self

import aiohttp

Json = Any
PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"


class Client:
    """Requests to one server; each answer is (status, parsed body)."""

    def __init__(self, url: str, token: str = "", ssl: Any = True) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.ssl = ssl

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self.ssl)
        self.session = aiohttp.ClientSession(headers=self.headers, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def ask(self, method: str, path: str, body: Json = None, **options: Any) -> Any:
        headers = {"Content-Type": options.pop("media", "application/json")}
        data = None if body is None else json.dumps(body).encode()
        async with self.session.request(
            method, self.url + path, data=data, headers=headers, **options
        ) as answer:
            text = await answer.text()
            parsed = json.loads(text) if answer.content_type == "application/json" else text
            return answer.status, parsed

    async def get(self, path: str, **query: str) -> Any:
        return await self.ask("GET", path, params=query)

    async def post(self, path: str, body: Json) -> Any:
        return await self.ask("POST", path, body)

    async def watch(self, path: str, **query: str) -> list[Json]:
        """All events until the server ends the watch."""
        params = {"watch": "true", "timeoutSeconds": "1"} | query
        async with self.session.get(self.url + path, params=params) as answer:
            return [json.loads(line) for line in (await answer.text()).splitlines()]


def a_pod(name: str, **spec: Any) -> Json:
    containers = [{"name": "c", "image": "pause"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def a_node(name: str, **labels: str) -> Json:
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def a_binding(pod: str, node: str, **metadata: str) -> Json:
    return {"metadata": {"name": pod, **metadata}, "target": {"kind": "Node", "name": node}}
