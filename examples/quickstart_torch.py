"""The torch face in a minute: a recurrent layer in place of torch.nn.RNN, and an operator inside any model.

Run with `python examples/quickstart_torch.py`.
"""

import torch

import isometry.torch as it

torch.manual_seed(0)

# The ScoRNN has torch.nn.RNN's interface; its recurrent matrix is orthogonal for all parameters.
layer = it.nn.ScoRNN(input_size=2, hidden_size=64)
readout = torch.nn.Linear(64, 1)
groups = it.nn.parameter_groups(torch.nn.ModuleList([layer, readout]), lr=1e-3, recurrent_lr=1e-4)
optimiser = torch.optim.RMSprop(groups, alpha=0.9)

# The adding problem: two marked numbers in a sequence of 100, their sum at the end.
for iteration in range(30):
    values, marks = torch.rand(100, 20, 1), torch.zeros(100, 20, 1)
    first, second = torch.randint(0, 50, (20,)), torch.randint(50, 100, (20,))
    each = torch.arange(20)
    marks[first, each], marks[second, each] = 1.0, 1.0
    target = values[first, each] + values[second, each]
    output, _ = layer(torch.cat([values, marks], dim=2))
    loss = torch.nn.functional.mse_loss(readout(output[-1]), target)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if iteration % 10 == 0:
        print(f"iteration {iteration:2d}  loss {loss.item():.3f}")

w = layer.recurrent_matrix()
print("still orthogonal:", bool((w.mT @ w - torch.eye(64)).abs().max() < 1e-4))

# An operator on its own is differentiable with respect to all its arguments.
vectors = torch.randn(16, 4, requires_grad=True)
it.Householder(vectors).apply(torch.randn(10, 16)).square().sum().backward()
print("gradient:", tuple(vectors.grad.shape))
