"""The calls of the laws of buffers and layouts besides the operator's own methods."""

import reference as ref
from registry import real_of

ACTIVATIONS = ("tanh", "relu", "oplu", "modrelu")


def others(subject, rng):
    """name -> a function of a subject that returns a list of arrays: recurrence, activate, from_matrix and
    gradients."""
    lead, dtype = subject.batch_shape, subject.dtype
    n_out, n_in = subject.matrix().shape[-2:]
    draw = lambda *shape: ref.normal(rng, *shape, dtype=dtype) / 2
    z, z_ct = draw(3, *lead, 6), draw(3, *lead, 6)
    units = 0.1 * ref.normal(rng, 6, dtype=real_of(dtype))
    calls = {}
    for name in ACTIVATIONS:
        bias = units if name == "modrelu" else None
        calls[f"activate {name}"] = lambda s, name=name, bias=bias: [s.activate(z, name, bias)]
        calls[f"activate_vjp {name}"] = lambda s, name=name, bias=bias: [
            g for g in s.activate_vjp(z, name, z_ct, bias) if g is not None
        ]
    if n_in == n_out and not lead:
        x, v, ct = draw(5, 3, 2), draw(n_in, 2), draw(5, 3, n_in)
        bias = 0.1 * ref.normal(rng, n_in, dtype=real_of(dtype))
        layer = {"h0": draw(3, n_in), "bias": draw(n_in), "activation": "modrelu", "activation_bias": bias}

        def recurrence_vjp(s):
            grads = s.recurrence_vjp(x, v, ct, **layer)
            own = grads.pop("transition")
            return [g for k in sorted(grads) if (g := grads[k]) is not None] + [own[k] for k in sorted(own)]

        calls |= {"recurrence": lambda s: [s.recurrence(x, v, **layer)], "recurrence_vjp": recurrence_vjp}
    if subject.case.object.inverse:
        w = subject.case.object.inverse(ref.haar(rng, n_in, dtype))
        calls["from_matrix"] = lambda s: list(s.from_matrix(w).values())
    return calls
