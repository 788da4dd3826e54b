#!/usr/bin/env python3
"""Runs a conformance probe for RFC 6455 against the server's echo route."""
import os
import shutil
import subprocess

from support import Checks, limited, server_from_arguments, skip

limited(120)
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
probe = os.environ.get("TROUPE_WS_PROBE", os.path.join(root, "..", "shared", "tools", "ws_rfc6455_probe.mjs"))
if not os.path.exists(probe):
    skip(f"no probe at {probe}; set TROUPE_WS_PROBE")
if not shutil.which("node"):
    skip("node is not installed")
server, _ = server_from_arguments(__doc__)
check = Checks()
with server:
    if server.get("/__echo")[0] == 404:
        skip("the server has no echo route; set server.echo_route")
    run = subprocess.run(["node", probe, str(server.port), "/__echo"], capture_output=True, text=True, timeout=100)
    print(run.stdout, end="")
    check.equal(run.returncode, 0, "all of the probe's checks pass")
check.done()
