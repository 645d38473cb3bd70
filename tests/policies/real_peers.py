"""Policy servers of others' own code, run in the environment of scripts/peers_env.sh: python real_peers.py KIND.

vla-eval    vla-eval's own model server
groot       a ZeroMQ reply socket that reads and writes with msgpack-numpy, as GR00T's server does
openvla     an HTTP server that reads and writes with json-numpy, as OpenVLA's server does

Each prints its port. Actions tell what was seen: the mean of the picture (0 to 1), the sum of the state, and the number of
the query in its episode. A prompt "fail" fails.
"""

import json
import sys

import numpy as np


def actions(image, state, count, chunk):
    row = [image.mean() / 255, float(np.sum(state)), count / 10, 0, 0, 0, 1]
    return np.tile(np.float32(row), (chunk, 1))


def vla_eval():
    import anyio
    from vla_eval.model_servers.base import ModelServer
    from vla_eval.model_servers.serve import serve_async
    from vla_eval.specs import DimSpec

    class Server(ModelServer):
        async def on_observation(self, obs, ctx):
            if obs["task_description"] == "fail":
                raise KeyError("no such task")
            row = actions(obs["images"]["agentview"], obs["states"], ctx.step, 1)[0]
            await ctx.send_action({"actions": row})

        def get_action_spec(self):
            return {"arm": DimSpec("position", 7, "delta")}

        def get_observation_spec(self):
            return {}

    async def main():
        async with anyio.create_task_group() as group:
            port = await group.start(serve_async, Server(), "127.0.0.1", 0)
            print(port, flush=True)

    anyio.run(main)


def groot():
    import msgpack
    import msgpack_numpy
    import zmq

    socket = zmq.Context().socket(zmq.REP)
    print(socket.bind_to_random_port("tcp://127.0.0.1"), flush=True)
    count = 0
    while True:
        request = msgpack.unpackb(socket.recv(), object_hook=msgpack_numpy.decode)
        answer = {"status": "ok"}
        if request["endpoint"] == "reset":
            count = 0
        elif request["endpoint"] == "get_action":
            obs = request["data"]["observation"]
            prompts = obs["annotation.human.action.task_description"]
            state = [k for k in obs if k.startswith("state.")]
            rows = [
                actions(obs["video.image"][b], sum(obs[k][b].sum() for k in state), count, 16)
                for b in range(len(prompts))
            ]
            names = ("x", "y", "z", "roll", "pitch", "yaw", "gripper")
            parts = {f"action.{n}": np.stack(rows)[:, :, k : k + 1] for k, n in enumerate(names)}
            answer = (
                {"error": "no such task"} if "fail" in prompts else [parts, {"n": np.float64(1)}]
            )
            count += 1
        socket.send(msgpack.packb(answer, default=msgpack_numpy.encode))


def openvla():
    from http.server import BaseHTTPRequestHandler, HTTPServer

    import json_numpy

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json_numpy.loads(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if body["instruction"] == "fail":
                text = json.dumps("error")
            else:
                chunk = actions(body["full_image"], body["state"], 0, 8)
                text = json_numpy.dumps(list(chunk.astype(np.float64)))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    {"vla-eval": vla_eval, "groot": groot, "openvla": openvla}[sys.argv[1]]()
