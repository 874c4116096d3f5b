"""A program whose types `tests/test_types.py` has mypy check: what expressions and calls return keeps its type."""

from typing import Any, assert_type

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import isometry as iso
import isometry.torch as it

op = it.Householder.random(3)
assert_type(op, it.Householder)
assert_type(op.H, it.Adjoint[it.Householder])
assert_type(op.T, it.Adjoint[it.Householder])
assert_type(op.H.H, it.Householder)
assert_type(op.H.operator.vectors, Tensor)
assert_type(op.columns(2), it.Columns[it.Householder])
assert_type(op.columns(2).operator, it.Householder)
assert_type(op.columns(2).H.H, it.Columns[it.Householder])
assert_type(op.double(), it.Householder)
assert_type(op.cpu().float().cdouble().cfloat(), it.Householder)
assert_type(op.to(torch.float64).detach(), it.Householder)
assert_type(op.H.double(), it.Adjoint[it.Householder])
assert_type(op @ op, it.Operator)
assert_type(op @ torch.ones(3), Tensor)
assert_type(torch.ones(3) @ op, Tensor)
assert_type(op(torch.ones(3)), Tensor)
assert_type(op.H(torch.ones(3)), Tensor)
assert_type(list(it.Cayley(torch.ones(2, 3))), list[it.Cayley])

own = iso.Householder(np.ones((3, 2)))
assert_type(own.H, iso.Adjoint[iso.Householder])
assert_type(own.H.H, iso.Householder)
assert_type(own.columns(2), iso.Columns[iso.Householder])
assert_type(own.columns(2).operator, iso.Householder)
assert_type(own @ own, iso.Operator)

x = torch.ones(4, 2, 3)
packed: PackedSequence = pack_sequence([x[:, 0]])
for layer in (it.nn.ScoRNN(3, 5), it.nn.GRU(3, 5), it.nn.RNN(3, 5), it.nn.DeltaProduct(3, 5)):
    assert_type(layer(x), tuple[Tensor, Tensor])
marked = torch.zeros(4, 2, dtype=torch.bool)
assert_type(it.nn.GRU(3, 5)(x, None, starts=marked, start_state=torch.zeros(1, 2, 5)), tuple[Tensor, Tensor])
assert_type(it.nn.GRU(3, 5)(packed), tuple[Any, Tensor])
h = torch.zeros(1, 2, 5)
assert_type(it.nn.LSTM(3, 5)(x, (h, h)), tuple[Tensor, tuple[Tensor, Tensor]])
assert_type(it.nn.LSTM(3, 5)(x, starts=marked, start_state=(h, h)), tuple[Tensor, tuple[Tensor, Tensor]])
assert_type(it.nn.LSTM(3, 5).forward(x, (h, h)), tuple[Tensor, tuple[Tensor, Tensor]])
assert_type(it.nn.LSTM(3, 5).step(x[0], (h, h)), tuple[Tensor, Tensor])
assert_type(it.nn.ScoRNN(3, 5).step(x[0]), Tensor)
assert_type(it.nn.OperatorModule(op)(torch.ones(3)), Tensor)
assert_type(it.nn.OperatorModule(op).operator(), it.Operator)
assert_type(it.adapters.HRA(torch.nn.Linear(3, 3), 2)(x), Tensor)
assert_type(it.linalg.geqrf(torch.ones(3, 2)).tau, Tensor)
it.optim.CayleySGD([torch.eye(3)], lr=torch.tensor(0.1))
