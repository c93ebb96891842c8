"""Start the installed server, PING it, append an entry, and end it: what a wheel is tested with."""

import socket
import subprocess
import sys
import tempfile
import time

import redis

PATIENCE_S = 30


def main() -> None:
    """Exit with a traceback where anything is not as it should be."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "headrace", "--port", str(port), "--dir", folder]
        server = subprocess.Popen(command)
        try:
            client = redis.Redis(port=port)
            until_s = time.monotonic() + PATIENCE_S
            while True:
                try:
                    assert client.ping()
                    break
                except redis.ConnectionError:
                    if server.poll() is not None or time.monotonic() > until_s:
                        raise
                    time.sleep(0.05)
            client.xadd("stream", {"field": "value"})
            assert client.xlen("stream") == 1
            print(client.info("server")["headrace_build"])
        finally:
            server.terminate()
            assert server.wait(PATIENCE_S) == 0


if __name__ == "__main__":
    main()
