"""The transformer against an independent reference, and its symmetries."""

import math
from dataclasses import replace

import pytest
import torch

from algocapture.models import Transformer
from algocapture.models.transformer import rotary_angles, rotate
from tests.cases import MODELS, POINTS, TOKENS

CASES = [case for case in MODELS if isinstance(case.model, Transformer)]
SMALL = Transformer(depth=2, width=16, heads=2, causal=False)
cases = pytest.mark.parametrize("case", CASES, ids=str)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def make(config, spec, seed=0):
    """Float64, with every parameter moved off its initial zeros and ones."""
    module = config.build(spec, generator(seed)).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(
                parameter.shape, generator=generator(1), dtype=torch.float64
            )
    return module


def inputs(spec, n=3, length=9, seed=2):
    if spec.inputs == "tokens":
        return torch.randint(spec.vocab, (n, length), generator=generator(seed))
    return torch.randn(n, length, spec.features, generator=generator(seed), dtype=torch.float64)


def layer_norm(x, norm):
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return centred / scale * norm.weight + norm.bias


def turned(x, base):
    """RoPE by complex numbers: x is (n, heads, length, width)."""
    half = x.shape[-1] // 2
    positions = torch.arange(x.shape[2], dtype=torch.float64)
    angle = positions[:, None] / base ** (torch.arange(half, dtype=torch.float64) / half)
    z = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat((z.real, z.imag), -1)


def attention(block, x, config):
    n, length, width = x.shape
    shape = (n, length, config.heads, width // config.heads)
    q, k, v = (
        torch.einsum("nli,oi->nlo", x, matrix).reshape(shape).permute(0, 2, 1, 3)
        for matrix in block.qkv.split(width)
    )
    if config.position == "rope":
        q, k = turned(q, config.rope_base), turned(k, config.rope_base)
    scores = torch.einsum("nhad,nhbd->nhab", q, k) / math.sqrt(q.shape[-1])
    if config.causal:
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -torch.inf)
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    mixed = torch.einsum("nhab,nhbd->nahd", weights, v).reshape(n, length, width)
    return torch.einsum("nli,oi->nlo", mixed, block.out)


def reference(module, x, config, spec):
    """Every position of every block, by einsum."""
    table = module.embedding
    x = (
        table[x]
        if spec.inputs == "tokens"
        else torch.einsum("nlf,fw->nlw", x, table[:-1]) + table[-1]
    )
    if config.position == "marks":
        for row, position in enumerate(spec.marks):
            x[:, position] += module.marks[row]
    for block in module.blocks:
        x = x + attention(block, layer_norm(x, block.norm1), config)
        h = torch.einsum("nlw,hw->nlh", layer_norm(x, block.norm2), block.up)
        h = 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))
        x = x + torch.einsum("nlh,wh->nlw", h, block.down)
    x = layer_norm(x, module.norm)
    x = {"last": x[:, -1], "mean": x.mean(1), "every": x}[config.reads(spec)]
    out = x @ module.head.T + module.head_bias
    return out if config.is_class(spec) else out[..., 0]


@cases
def test_forward_equals_an_independent_einsum(case):
    config, spec = case.model, case.spec
    module = make(config, spec)
    x = inputs(spec)
    expected = reference(module, x, config, spec)
    got = module(x)
    assert got.shape == expected.shape
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


def test_an_encoder_sees_everything():
    module = make(Transformer(depth=1, width=16, heads=2, causal=False, readout="every"), TOKENS)
    x = inputs(TOKENS, n=1, length=12)
    changed = x.clone()
    changed[:, -1] = (x[:, -1] + 1) % TOKENS.vocab
    assert ((module(x) - module(changed)).abs().amax(-1) > 1e-6).all()


@pytest.mark.parametrize("readout", ["mean", "every"])
def test_an_encoder_without_positions_commutes_with_permutations(readout):
    module = make(replace(SMALL, position="none", readout=readout), TOKENS)
    x = inputs(TOKENS, n=2, length=10)
    order = torch.randperm(10, generator=generator(5))
    a, b = module(x), module(x[:, order])
    torch.testing.assert_close(b, a[:, order] if readout == "every" else a, rtol=1e-10, atol=1e-10)


def test_marks_fix_source_and_target_and_nothing_else():
    module = make(replace(SMALL, width=12, position="marks"), POINTS)
    x = inputs(POINTS, n=2, length=8)
    inner = torch.cat(
        (torch.tensor([0]), 1 + torch.randperm(6, generator=generator(3)), torch.tensor([7]))
    )
    torch.testing.assert_close(module(x[:, inner]), module(x), rtol=1e-10, atol=1e-10)
    assert (module(x[:, [7, *range(1, 7), 0]]) - module(x)).abs().min() > 1e-6


def test_rotary_scores_depend_on_distance_alone():
    q, k = torch.randn(2, 1, 1, 1, 8, generator=generator(), dtype=torch.float64)
    rotation = rotary_angles(40, 8, 10_000.0, torch.zeros((), dtype=torch.float64))
    every = [rotate(x.expand(1, 1, 40, 8), rotation)[0, 0] for x in (q, k)]
    scores = every[0] @ every[1].T
    for distance in (0, 3, 11):
        diagonal = scores.diagonal(-distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precisions_stay_close_to_float64(dtype):
    config, spec = replace(SMALL, causal=True, readout="every"), TOKENS
    module = config.build(spec, generator())
    x = inputs(spec, length=64)
    exact = config.build(spec, generator()).double()(x)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is torch.bfloat16):
        got = module(x)
    assert got.dtype == dtype
    # Round-off: eps of the dtype times a few products in a row, on outputs of size 0.1.
    tolerance = 20 * torch.finfo(dtype).eps * exact.abs().max().item()
    torch.testing.assert_close(got.double(), exact, rtol=0, atol=tolerance)


BAD = [
    ({"depth": 0}, "depth"),
    ({"depth": True}, "depth"),
    ({"width": 10, "heads": 4}, "heads"),
    ({"width": 6, "heads": 2}, "rope"),
    ({"mlp": 0}, "mlp"),
    ({"position": "sine"}, "position"),
    ({"readout": "first"}, "readout"),
    ({"output": "both"}, "output"),
    ({"classes": 1}, "classes"),
    ({"classes": 4, "output": "value"}, "classes"),
    ({"rope_base": 1.0}, "rope_base"),
    ({"causal": 1}, "causal"),
]


@pytest.mark.parametrize(("fields", "named"), BAD)
def test_bad_fields_are_named(fields, named):
    with pytest.raises(ValueError, match=named):
        Transformer(**fields)


@pytest.mark.parametrize(
    ("fields", "spec", "named"),
    [
        ({"position": "marks"}, TOKENS, "marks"),
        ({"output": "class"}, POINTS, "classes"),
        ({"classes": 3}, TOKENS, "classes"),
    ],
)
def test_fields_that_do_not_fit_the_task_are_named(fields, spec, named):
    with pytest.raises(ValueError, match=named):
        Transformer(**fields).build(spec, generator())


@pytest.mark.parametrize("depth", [1, 40])
def test_initialisation_is_the_one_that_is_documented(depth):
    """Entries N(0, 1/fan-in); what writes into the residual stream is smaller by sqrt(2 depth), so
    that all branches together add what one would. Of 2^12 entries or more, |z| < 4 each."""
    torch_seed = torch.Generator().manual_seed(3)
    module = Transformer(depth=depth, width=64, heads=2).build(TOKENS, torch_seed)
    for block in (module.blocks[0], module.blocks[-1]):
        for name, shrink in (("qkv", 1), ("up", 1), ("out", 2 * depth), ("down", 2 * depth)):
            weight = getattr(block, name).detach().double()
            scaled = weight.square().mean() * weight.shape[1] * shrink
            z = (scaled - 1) / math.sqrt(2 / weight.numel())  # the variance of a mean of squares
            assert abs(z) < 4, (name, float(scaled))
