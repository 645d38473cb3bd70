"""What small_trainer.py made, behind openpi's protocol. python small_server.py CHECKPOINT PORT WORK

WORK is there to be known by."""

import os
import signal
import sys
from pathlib import Path

import msgpack
import numpy as np
from websockets.sync.server import serve

checkpoint, port = sys.argv[1], int(sys.argv[2])
mean = np.load(Path(checkpoint, "mean.npy")) if checkpoint else np.zeros(2)
kill = Path(checkpoint).parent / "kill-in-evaluation"


def handle(ws):
    ws.send(msgpack.packb({}))
    for count, _ in enumerate(ws):
        if checkpoint and count == 9 and kill.exists():
            kill.unlink()
            os.kill(os.getppid(), signal.SIGKILL)
        a = np.float32([mean])
        keys = {b"__ndarray__": True, b"data": a.tobytes(), b"dtype": a.dtype.str}
        ws.send(msgpack.packb({"actions": {**keys, b"shape": list(a.shape)}}))


with serve(handle, "127.0.0.1", port, compression=None) as server:
    server.serve_forever()
