"""A trivial policy for evaluation.py, in a folder of its own since others beside that have packages' names: it opens the gripper and stays where it is, ten actions at a time.

`Still` is asked in the evaluation's own process. `python still.py` is the same behind openpi's
protocol, in plain websockets and MessagePack: it prints its port, and CPU seconds when it is told to end."""

import numpy as np

CHUNK = np.tile(np.float32([0.0] * 6 + [-1.0]), (10, 1))


class Still:
    """Stays where it is."""

    expects = {
        "cameras": ["image", "wrist_image"],
        "image_size": 224,
        "state": 8,
        "actions": 7,
        "chunk": 10,
    }

    def infer(self, observation):
        assert observation["observation/image"].shape == (224, 224, 3)
        return {"actions": CHUNK}


def main():
    import signal
    import sys
    import threading
    import time

    import msgpack
    from websockets.sync.server import serve

    def array(found):
        if b"__ndarray__" not in found:
            return found
        kind, shape = found[b"dtype"], found[b"shape"]
        return np.frombuffer(found[b"data"], kind).reshape(shape)

    def handle(connection):
        connection.send(msgpack.packb({"expects": Still.expects}))
        for message in connection:
            actions = Still().infer(msgpack.unpackb(message, object_hook=array))["actions"]
            keys = {b"__ndarray__": True, b"data": actions.tobytes()}
            keys |= {b"dtype": actions.dtype.str, b"shape": list(actions.shape)}
            connection.send(msgpack.packb({"actions": keys}))

    with serve(handle, "127.0.0.1", 0, compression=None, max_size=None) as server:
        signal.signal(
            signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown, daemon=True).start()
        )
        print(server.socket.getsockname()[1], flush=True)
        began = time.process_time()
        server.serve_forever()
        print(time.process_time() - began, flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
