"""The NumPy face in a minute: build operators, apply them, compute gradients, run a recurrence.

Run with `python examples/quickstart_numpy.py`.
"""

import numpy as np

import isometry as iso

rng = np.random.default_rng(0)

# A product of 16 Householder reflections on R^128: orthogonal for all vectors.
reflections = iso.Householder.random(128, 16, rng=rng)
x = rng.standard_normal((50, 128))  # 50 vectors, each in the last axis
turned = reflections.apply(x)
print("norms are kept:          ", np.allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(x, axis=1)))
print("the adjoint undoes it:   ", np.allclose(reflections.apply_adjoint(turned), x))

# A scaled Cayley transform, in single precision; e(W) = max|W^H W - I| / (n eps) stays small for every size of A.
upper = 100 * rng.standard_normal(64 * 63 // 2).astype(np.float32)
w = iso.Cayley(upper).matrix()
print("distance from orthogonal:", float(iso.orthogonality_error(w)), "units of n eps")

# A stack of 1000 rotations of R^3, each applied to its own vector.
rotations = iso.Cayley(rng.standard_normal((1000, 3)))
print("one vector per rotation: ", rotations.apply(rng.standard_normal((1000, 3))).shape)

# h_t = modrelu(W h_{t-1} + V x_t) over 200 steps, and its gradients.
inputs, input_weight, bias = rng.standard_normal((200, 8, 2)), rng.standard_normal((128, 2)), np.full(128, -0.1)
layer = {"activation": "modrelu", "activation_bias": bias}
states = iso.recurrence(reflections, inputs, input_weight, **layer)
grads = iso.recurrence_vjp(reflections, inputs, input_weight, states, np.ones_like(states), **layer)
print("states and gradients:    ", states.shape, {k: v.shape for k, v in grads["transition"].items()})
