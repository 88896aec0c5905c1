"""The paper's transformer: appendix A written out, and closed forms of its variance."""

import math
from dataclasses import replace

import pytest
import torch
from torch.func import functional_call, jacrev, vmap

from algocapture.models import SimplifiedTransformer
from tests.cases import MODELS, POINTS

CASES = [case for case in MODELS if isinstance(case.model, SimplifiedTransformer)]
PHI = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "erf": torch.erf,
    "identity": lambda x: x,
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def weights(config, block):
    """The weights of the appendix, whatever the parameterisation."""
    n = config.width
    ntk = config.parameterisation != "standard"
    std = dict.fromkeys(("query", "key", "value", "project"), n ** (-0.5))
    std |= {"weight": (config.weight_var / n) ** 0.5, "bias": config.bias_var**0.5}
    held = dict(block.named_parameters())
    return {
        name.removesuffix(".parameter"): value * (std.get(name.split(".")[0], 1) if ntk else 1)
        for name, value in held.items()
    }


def block_output(config, w, x):
    """One block by the equations of appendix A, head by head, token by token."""
    n, length, _ = x.shape
    z = torch.zeros(n, length, config.width, dtype=x.dtype)
    for h in range(config.heads):
        q, k, v = (torch.einsum("nti,io->nto", x, w[name][h]) for name in ("query", "key", "value"))
        for a in range(length):
            seen = a + 1 if config.causal else length
            scores = torch.einsum("nd,nbd->nb", q[:, a], k[:, :seen]) / math.sqrt(config.key_width)
            attention = (config.score_scale * scores).exp()
            attention = attention / attention.sum(-1, keepdim=True)
            head = torch.einsum("nb,nbi->ni", attention, v[:, :seen])
            if config.output_projection:
                head = head @ w["project"][h]
            z[:, a] += head / math.sqrt(config.heads)
    centred = z - z.mean(-1, keepdim=True)
    normed = centred / (centred.square().mean(-1, keepdim=True) + config.epsilon).sqrt()
    if config.layernorm_affine:
        normed = normed * w["gain"] + w["shift"]
    return PHI[config.activation](normed) @ w["weight"].T + w["bias"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward_equals_the_appendix_written_out(case):
    config, spec = case.model, case.spec
    module = config.build(spec, generator()).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn(
                parameter.shape, generator=generator(1), dtype=torch.float64
            )
    raw = module.embedding.parameter
    if spec.inputs == "tokens":
        inputs = torch.randint(spec.vocab, (3, 6), generator=generator(2))
        x = raw[inputs]
    else:
        inputs = torch.randn(3, 6, spec.features, generator=generator(2), dtype=torch.float64)
        standard = config.parameterisation == "standard"
        x = inputs @ raw / (1 if standard else math.sqrt(spec.features))
    for block in module.blocks:
        x = block_output(config, weights(config, block), x)
    if config.parameterisation == "mean-field":
        x = x / math.sqrt(config.width)
    x = {"tokens": x, "last": x[:, -1], "mean": x.mean(1)}[config.reads(spec)]
    if spec.output == "value" and config.outputs is None:
        x = x[..., 0]
    torch.testing.assert_close(module(inputs), x, rtol=1e-10, atol=1e-10)


BASE = SimplifiedTransformer(
    depth=2, width=16, heads=4, key_width=8, weight_var=1.7, bias_var=0.2, outputs=16
)


def points(n=4, length=5):
    return torch.randn(n, length, 3, generator=generator(3), dtype=torch.float64)


def test_parameterisations_are_one_network_at_initialisation():
    outputs = {
        name: replace(BASE, parameterisation=name).build(POINTS, generator()).double()(points())
        for name in ("standard", "ntk", "mean-field")
    }
    # Draws are float32: the standard deviations are multiplied in before or after rounding.
    torch.testing.assert_close(outputs["standard"], outputs["ntk"], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(outputs["mean-field"] * 4, outputs["ntk"])


def test_ntk_parameters_are_standard_normal():
    module = replace(BASE, width=64).build(POINTS, generator())
    z = []
    for parameter in module.parameters():
        if (count := parameter.numel()) > 200:
            z.append(abs(parameter.mean().item()) * math.sqrt(count))
            z.append(abs(parameter.square().mean().item() - 1) * math.sqrt(count / 2))
    assert len(z) == 16
    assert max(z) < 4


@pytest.mark.parametrize("readout", ["last", "mean"])
@pytest.mark.parametrize("causal", [True, False])
def test_readouts_are_parts_of_the_tokens(readout, causal):
    config = replace(BASE, causal=causal)
    tokens = replace(config, readout="tokens").build(POINTS, generator()).double()(points())
    got = replace(config, readout=readout).build(POINTS, generator()).double()(points())
    torch.testing.assert_close(got, tokens[:, -1] if readout == "last" else tokens.mean(1))


def test_tokens_commute_with_permutations():
    module = replace(BASE, readout="tokens").build(POINTS, generator()).double()
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(module(points()[:, order]), module(points())[:, order])


# E[phi(u)^2] for standard normal u, LayerNorm's outputs when T = 1: attention has no choice there.
# For ReLU and the identity this is exact at every width, since z and -z have the same law.
@pytest.mark.parametrize(("activation", "second_moment"), [("relu", 0.5), ("identity", 1.0)])
@pytest.mark.parametrize("output_projection", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_variance_of_a_single_token(activation, second_moment, output_projection, depth):
    """8 comparisons, |z| < 4: the mean of f^2 over 200 networks of width 16, one value each."""
    config = replace(
        BASE,
        depth=depth,
        activation=activation,
        output_projection=output_projection,
        epsilon=0.0,
        readout="last",
    )
    x = torch.tensor([[[0.3, -1.0, 2.0]]], dtype=torch.float64)
    draws = torch.stack(
        [
            config.build(POINTS, generator(seed)).double()(x).square().mean().detach()
            for seed in range(200)
        ]
    )
    expected = 1.7 * second_moment + 0.2
    z = (draws.mean() - expected) / (draws.std() / math.sqrt(len(draws)))
    assert abs(z) < 4


def test_scale_of_the_scores():
    """Without scores attention is uniform: every token of the first block has the same output."""
    config = replace(BASE, depth=1, readout="tokens")
    uniform = replace(config, score_scale=0.0).build(POINTS, generator()).double()(points())
    torch.testing.assert_close(uniform, uniform[:, :1].expand_as(uniform))
    sharp = config.build(POINTS, generator()).double()(points())
    assert (sharp - sharp[:, :1])[:, 1:].abs().mean() > 0.01


@pytest.mark.parametrize("affine", [False, True])
def test_functional_call_and_jacobians(affine):
    """What an empirical NTK needs: per-input gradients by vmap equal those by autograd."""
    config = replace(BASE, outputs=1, readout="last", layernorm_affine=affine)
    module = config.build(POINTS, generator()).double()
    parameters = {name: p.detach() for name, p in module.named_parameters()}

    def f(parameters, x):
        return functional_call(module, parameters, (x.unsqueeze(0),))[0, 0]

    jacobian = vmap(jacrev(f), (None, 0))(parameters, points())
    for i, x in enumerate(points()):
        gradients = torch.autograd.grad(module(x.unsqueeze(0))[0, 0], list(module.parameters()))
        for name, gradient in zip(parameters, gradients, strict=True):
            torch.testing.assert_close(jacobian[name][i], gradient)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"depth": 0}, "depth"),
        ({"heads": 0}, "heads"),
        ({"key_width": 1.5}, "key_width"),
        ({"activation": "swish"}, "activation"),
        ({"weight_var": -1.0}, "weight_var"),
        ({"bias_var": float("inf")}, "bias_var"),
        ({"parameterisation": "mup"}, "parameterisation"),
        ({"readout": "every"}, "readout"),
        ({"outputs": 0}, "outputs"),
        ({"causal": None}, "causal"),
    ],
)
def test_bad_fields_are_named(fields, named):
    with pytest.raises(ValueError, match=named):
        SimplifiedTransformer(**fields)
