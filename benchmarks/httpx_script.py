"""The smallest useful script that asks a model over HTTP, the reference for `chorus ask`."""

from __future__ import annotations

import json
import os
import sys

import httpx

if __name__ == "__main__":
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": " ".join(sys.argv[1:])}], "stream": True}
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    address = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    with httpx.stream("POST", address, json=body, headers=headers, timeout=60) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"][:1]:
                    print(choice["delta"].get("content") or "", end="", flush=True)
