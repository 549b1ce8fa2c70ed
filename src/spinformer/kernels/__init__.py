"""Operators for a GPU: each does in a few launches what its plain twin does in hundreds of small ones.

An operator is registered with `torch.library`, with its own derivative, so `torch.compile` and `torch.export` see one
node. It is written in Triton; where there is no Triton, or no GPU, the twin runs. The twins stand where the mathematics
is: in `spinformer.games`, `spinformer.ising` and `spinformer.attention`. `device/` holds what runs on the device.
"""
