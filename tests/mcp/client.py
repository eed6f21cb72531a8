"""Uses every tool with the official client: of `contexture mcp`, and over HTTP.

Usage: client.py PROGRAM PROJECT STATE
"""

import asyncio
import os
import subprocess
import sys

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PROGRAM, PROJECT, STATE = sys.argv[1:]
CALLS = [
    ("context", {}, "nothing is marked"),
    ("remember", {"text": "The port is 8080."}, "mem-1"),
    ("search", {"query": "port"}, "mem-1"),
    ("read", {"what": "src/port.rs"}, "8080"),
    ("explain", {}, "nothing out"),
    ("handoff", {}, "no session"),
]


ENVIRONMENT = {**os.environ, "CONTEXTURE_TOKENIZER": "estimate", "XDG_RUNTIME_DIR": STATE}


async def use(streams):
    async with ClientSession(*streams[:2]) as session:
        await session.initialize()
        offered = {tool.name for tool in (await session.list_tools()).tools}
        assert offered == {name for name, _, _ in CALLS}, offered
        for name, arguments, expected in CALLS:
            result = await session.call_tool(name, arguments)
            assert expected in result.content[0].text, (name, result)
        resources = (await session.list_resources()).resources
        read = await session.read_resource(resources[0].uri)
        assert "revision" in read.contents[0].text, read
        prompt = await session.get_prompt("context", {})
        assert "revision" in prompt.messages[0].content.text, prompt


async def over_stdio():
    server = StdioServerParameters(
        command=PROGRAM, args=["--state", STATE + "/s", "mcp"], cwd=PROJECT, env=ENVIRONMENT
    )
    async with stdio_client(server) as streams:
        await use(streams)


async def over_http():
    state = STATE + "/h"
    command = [PROGRAM, "--state", state, "serve", "--http", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as server:
        try:
            url = server.stdout.readline().decode().strip()
            with open(state + "/http-token") as file:
                headers = {"Authorization": "Bearer " + file.read().strip()}
            async with httpx2.AsyncClient(headers=headers) as client:
                address = f"{url}?project={PROJECT}"
                async with streamable_http_client(address, http_client=client) as streams:
                    await use(streams)
        finally:
            server.terminate()


async def main():
    os.makedirs(STATE, exist_ok=True)
    await over_stdio()
    await over_http()
    print(f"MCP: {len(CALLS)} tools")


asyncio.run(main())
