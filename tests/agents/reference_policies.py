"""LIBERO's three architectures on pictures, written a second time from their published description.

Plain functions of weights: nothing of the package is used but the names of its weights, each of which must be
read (:class:`Weights`). Pictures are (rows, time, 3, height, width), numbers (rows, time, n), the sentence
(rows, 768). All in evaluation: no dropout, batch norms by their running statistics.
"""

import torch
from torch.nn import functional as F

CAMERAS = ("front", "wrist")


class Weights:
    """A state by its names below a prefix; what was read is remembered by all prefixes together."""

    def __init__(self, state, prefix="", used=None):
        self.state, self.prefix = state, prefix
        self.used = set() if used is None else used

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, name):
        full = f"{self.prefix}{name}"
        if full in self.state:
            self.used.add(full)
            return self.state[full]
        assert any(n.startswith(f"{full}.") for n in self.state), f"there is no {full}"
        return Weights(self.state, f"{full}.", self.used)

    def unread(self):
        return {n for n in self.state if not n.endswith("num_batches_tracked")} - self.used


def linear(w, x):
    return x @ w.weight.T + w.bias


def batch_norm(w, h):
    one = (slice(None), None, None)
    scaled = (h - w.running_mean[one]) / torch.sqrt(w.running_var[one] + 1e-5)
    return scaled * w.weight[one] + w.bias[one]


# Pictures by the first half of a ResNet-18.


def film(w, h, sentence):
    """(1 + γ) h + β by one linear map of the sentence: β first, then γ."""
    both = linear(w.linear, sentence)
    channels = h.shape[1]
    return (1 + both[:, channels:, None, None]) * h + both[:, :channels, None, None]


def residual(w, x, stride):
    h = F.relu(batch_norm(w.norm1, F.conv2d(x, w.conv1.weight, stride=stride, padding=1)))
    h = batch_norm(w.norm2, F.conv2d(h, w.conv2.weight, padding=1))
    if stride == 2:
        x = batch_norm(w.shortcut["1"], F.conv2d(x, w.shortcut["0"].weight, stride=2))
    return F.relu(h + x)


def keypoints(w, h):
    """The expected place of each of 32 maps under its softmax: x of all, then y of all."""
    maps = F.conv2d(h, w.conv.weight, w.conv.bias)
    height, width = maps.shape[2:]
    x, y = torch.linspace(-1, 1, width), torch.linspace(-1, 1, height)
    there = torch.exp(maps - torch.logsumexp(maps, (2, 3), keepdim=True))
    return torch.cat(
        [torch.einsum("nkyx,x->nk", there, x.to(h)), torch.einsum("nkyx,y->nk", there, y.to(h))], 1
    )


def resnet(w, pictures, sentence):
    rows, steps = pictures.shape[:2]
    told = sentence.repeat_interleave(steps, 0)
    h = F.conv2d(pictures.flatten(0, 1), w.stem["0"].weight, stride=2, padding=3)
    h = F.max_pool2d(F.relu(batch_norm(w.stem["1"], h)), 3, 2, 1)
    for k, stride in enumerate((1, 1, 2, 1)):
        h = film(w.films[str(k)], residual(w.blocks[str(k)], h, stride), told)
    return linear(w.project, keypoints(w.keypoints, h)).view(rows, steps, -1)


# Transformers.


def layer_norm(w, x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5) * w.weight + w.bias


def attention(w, x, heads, mask):
    """Queries, keys and values of all heads lie in one matrix without a bias, in this order."""
    q, k, v = (
        part.unflatten(-1, (heads, -1)).transpose(1, 2)
        for part in (x @ w.qkv.weight.T).chunk(3, -1)
    )
    return linear(w.out, F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2))


def transformer(w, x, layers, heads, mask=None):
    for k in range(layers):
        block = w.blocks[str(k)]
        x = x + attention(block.attention, layer_norm(block.norm1, x), heads, mask)
        h = F.gelu(linear(block.feed_forward["0"], layer_norm(block.norm2, x)))
        x = x + linear(block.feed_forward["3"], h)
    return x


def through_time(w, tokens):
    """Tokens (rows, time, tokens, 64), the sentence first; what becomes of it at each step."""
    rows, steps, count, width = tokens.shape
    pair = torch.arange(0, width, 2, dtype=tokens.dtype)
    angles = torch.arange(steps, dtype=tokens.dtype)[:, None] / 10 ** (pair / width)
    tokens = tokens + torch.cat([torch.sin(angles), torch.cos(angles)], 1)[None, :, None]
    step = [t for t in range(steps) for _ in range(count)]
    mask = torch.tensor([[read <= reader for read in step] for reader in step])
    out = transformer(w.transformer, tokens.flatten(1, 2), 4, 6, mask)
    return out.view(rows, steps, count, width)[:, :, 0]


# What all end in.


def head(w, x):
    """Means and deviations (…, 5, 7), and the weights of the modes."""
    h = F.relu(linear(w.shared["0"]["0"], x))
    h = linear(w.shared["1"], F.relu(linear(w.shared["0"]["2"], h)))
    mean = torch.tanh(linear(w.means, h)).unflatten(-1, (5, 7))
    std = torch.log1p(torch.exp(linear(w.deviations, h))).unflatten(-1, (5, 7)) + 1e-4
    return mean, std, torch.softmax(linear(w.logits, h), -1)


# The architectures.


def number_tokens(w, seen):
    """In the order of the policy's own maps; among the tokens of a step none has a place."""
    parts = (seen["gripper"], seen["joints"])
    return [linear(w.maps[str(k)], part) for k, part in enumerate(parts)]


def resnet_rnn(w, seen, sentence):
    images = [resnet(w.encoders[str(k)], seen[c], sentence) for k, c in enumerate(CAMERAS)]
    steps = images[0].shape[1]
    told = linear(w.sentence, sentence)[:, None].expand(-1, steps, -1)
    x = torch.cat([*images, seen["gripper"], seen["joints"], told], -1)
    assert x.shape[-1] == 169
    for layer in range(2):
        x = lstm(w.lstm, layer, x)
    return head(w.head, x)


def lstm(w, layer, x):
    """From a state of zeros; gates in torch's order: input, forget, cell, output."""
    hidden = cell = x.new_zeros(len(x), 1024)
    out = []
    for now in x.unbind(1):
        gates = now @ w[f"weight_ih_l{layer}"].T + w[f"bias_ih_l{layer}"]
        gates = gates + hidden @ w[f"weight_hh_l{layer}"].T + w[f"bias_hh_l{layer}"]
        i, f, g, o = gates.chunk(4, 1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
        out.append(hidden)
    return torch.stack(out, 1)


def resnet_t(w, seen, sentence):
    images = [resnet(w.encoders[str(k)], seen[c], sentence) for k, c in enumerate(CAMERAS)]
    told = linear(w.sentence, sentence)[:, None].expand_as(images[0])
    tokens = torch.stack([told, *number_tokens(w.numbers, seen), *images], 2)
    return head(w.head, through_time(w, tokens))


def vit_t(w, seen, sentence):
    patches = []
    for k, camera in enumerate(CAMERAS):
        of, pictures = w.encoders[str(k)], seen[camera].flatten(0, 1)
        h = F.conv2d(pictures, of.stem["0"].weight, stride=2, padding=3)
        h = F.relu(batch_norm(of.stem["1"], h))
        h = batch_norm(of.norm, F.conv2d(h, of.patch.weight, of.patch.bias, stride=8))
        patches.append(h.flatten(2).transpose(1, 2))
    rows, steps = seen["joints"].shape[:2]
    frames, count = rows * steps, patches[0].shape[1]
    read = torch.cat(patches, 1) + w.place
    told = linear(w.spatial_sentence, sentence).repeat_interleave(steps, 0)[:, None]
    kind = w.kind[torch.tensor([0] * count + [1] * count + [2])]
    read = torch.cat([read, told], 1) + kind
    read = torch.cat([w.step.expand(frames, 1, -1), read], 1)
    summary = linear(w.smaller, transformer(w.spatial, read, 7, 8)[:, 0]).view(rows, steps, -1)
    told = linear(w.sentence, sentence)[:, None].expand_as(summary)
    tokens = torch.stack([told, summary, *number_tokens(w.numbers, seen)], 2)
    return head(w.head, through_time(w, tokens))
