"""Uses every tool of `contexture mcp` with the official client.

Usage: client.py PROGRAM PROJECT STATE
"""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PROGRAM, PROJECT, STATE = sys.argv[1:]
CALLS = [
    ("context", {}, "nothing is marked"),
    ("remember", {"text": "The port is 8080."}, "mem-1"),
    ("search", {"query": "port"}, "mem-1"),
    ("read", {"what": "src/port.rs"}, "8080"),
    ("explain", {}, "nothing out"),
    ("handoff", {}, "no session"),
]


async def main():
    environment = {**os.environ, "CONTEXTURE_TOKENIZER": "estimate", "XDG_RUNTIME_DIR": STATE}
    os.makedirs(STATE, exist_ok=True)
    server = StdioServerParameters(
        command=PROGRAM, args=["--state", STATE + "/s", "mcp"], cwd=PROJECT, env=environment
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
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
    print(f"MCP: {len(CALLS)} tools")


asyncio.run(main())
