"""Clients of policy servers, by the scheme of their address.

=================================  =================================================================
address                            who
=================================  =================================================================
``ws://HOST:8000``                 openpi's websocket, and whatever else speaks it (``perdure serve``)
``tcp://HOST:5555``                GR00T's ZeroMQ
``vla-eval://HOST:8000``           vla-eval's websocket
``http://HOST:8777/act``           OpenVLA's REST
=================================  =================================================================

None of them needs the server's packages. A server on another machine is spoken to only where that is
said (``anywhere``): what is sent is neither encrypted nor signed.
"""

from __future__ import annotations

from perdure.policies.client import Patience, PolicyClient, parse_address
from perdure.policies.groot import GrootClient
from perdure.policies.openpi import OpenPiClient
from perdure.policies.openvla import OpenVlaClient
from perdure.policies.vla_eval import VlaEvalClient


def connect(text: str, patience: Patience | None = None, anywhere: bool = False) -> PolicyClient:
    """A connection to the server of an address."""
    address, wait = parse_address(text, anywhere), patience or Patience()
    if address.scheme == "ws":
        return OpenPiClient(address, wait)
    if address.scheme == "tcp":
        return GrootClient(address, wait)
    if address.scheme == "vla-eval":
        return VlaEvalClient(address, wait)
    return OpenVlaClient(address, wait)
