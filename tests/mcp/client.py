"""Uses every tool with the official client, in both eras: of `contexture mcp`, and over HTTP.

Usage: client.py PROGRAM PROJECT STATE
"""

import asyncio
import json
import os
import pathlib
import subprocess
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PROGRAM, PROJECT, STATE = sys.argv[1:]
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
with open(pathlib.Path(__file__).with_name("calls.json")) as file:
    CALLS = [(call["tool"], call["arguments"], call["says"]) for call in json.load(file)]


ENVIRONMENT = {**os.environ, "CONTEXTURE_TOKENIZER": "estimate", "XDG_RUNTIME_DIR": STATE}


async def use(server, era):
    async with Client(server, mode=era) as client:
        assert client.protocol_version == ERAS[era], client.protocol_version
        offered = {tool.name for tool in (await client.list_tools()).tools}
        assert offered == {name for name, _, _ in CALLS}, offered
        for name, arguments, expected in CALLS:
            result = await client.call_tool(name, arguments)
            assert expected in result.content[0].text, (name, result)
        resources = (await client.list_resources()).resources
        read = await client.read_resource(resources[0].uri)
        assert "revision" in read.contents[0].text, read
        prompt = await client.get_prompt("context", {})
        assert "revision" in prompt.messages[0].content.text, prompt


async def over_stdio(era):
    state = f"{STATE}/{era}"
    server = StdioServerParameters(
        command=PROGRAM, args=["--state", state, "mcp"], cwd=PROJECT, env=ENVIRONMENT
    )
    await use(server, era)


async def over_http(era):
    state = f"{STATE}/{era}-http"
    command = [PROGRAM, "--state", state, "serve", "--http", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as server:
        try:
            url = server.stdout.readline().decode().strip()
            with open(state + "/http-token") as file:
                headers = {"Authorization": "Bearer " + file.read().strip()}
            async with httpx2.AsyncClient(headers=headers) as client:
                address = f"{url}?project={PROJECT}"
                await use(streamable_http_client(address, http_client=client), era)
        finally:
            server.terminate()


async def main():
    os.makedirs(STATE, exist_ok=True)
    for era in ERAS:
        await over_stdio(era)
        await over_http(era)
    print(f"MCP: {len(CALLS)} tools in {len(ERAS)} eras")


asyncio.run(main())
