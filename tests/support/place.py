"""Where the tensors of the laws are: a device of torch, `pytest --device`."""

device = "cpu"
