"""The Ising model: energies, effective fields, free energy of a mean-field state."""

from collections.abc import Callable

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision, widen
from spinformer.ising.couplings import Couplings, as_couplings


class Ising:
    """H(s) = - sum_i h_i s_i - sum_{i<j} J_ij s_i s_j,   P(s) ~ exp(-H(s) / temperature)    NGT Eqs. 10, 12

    fields: h, the paper's J_i, (B, n); couplings: J_ij, a symmetric (B, n, n) tensor, whose diagonal is ignored, or a
    Couplings object; temperature: the paper's gamma, a number or (B,); mask: (B, n), false for padding, which has no
    spin: it adds nothing to an energy, and its magnetisation is 0; trusted: whether the contents of temperature and
    mask have been checked before.
    """

    def __init__(
        self,
        fields: Tensor,
        couplings: Tensor | Couplings,
        temperature: float | Tensor,
        mask: Tensor | None = None,
        trusted: bool = False,
    ) -> None:
        checks.floating("fields", fields, (2,))
        if not trusted:
            checks.positive("temperature", temperature)
        checks.finite("fields", fields)
        self.batch, self.spins = fields.shape
        if not self.spins:
            raise ValueError(f"fields must hold at least one spin, shape (B, n); got {tuple(fields.shape)}")
        fields = widen(fields)
        self.couplings = as_couplings(couplings, self.batch, self.spins, fields.dtype)
        self.mask = mask if trusted else checks.mask("mask", mask, fields.shape, fields.device)
        self.fields = fields if self.mask is None else fields * self.mask
        gamma = torch.as_tensor(temperature, dtype=fields.dtype, device=fields.device)
        if gamma.dim() > 1 or (gamma.dim() == 1 and gamma.shape[0] != self.batch):
            raise ValueError(f"temperature must be a number or have shape ({self.batch},); got {tuple(gamma.shape)}")
        self.temperature = gamma.expand(self.batch)

    @full_precision
    def energy(self, spins: Tensor) -> Tensor:
        """H(s) for spins (B, n) or (B, S, n), any numbers in [-1, 1]: (B,) or (B, S)        NGT Eq. 10"""
        states = self._state("spins", spins, (2, 3))
        single = states.dim() == 2
        states = states[:, None] if single else states
        pairs = [self.couplings.matvec(state) for state in states.unbind(1)]
        pair = torch.stack(pairs, 1) if pairs else states
        result = -(states * (self.fields[:, None] + pair / 2)).sum(-1)
        return result.squeeze(1) if single else result

    def effective_field(self, m: Tensor) -> Tensor:
        """h_i + sum over j != i of J_ij m_j, for m (B, n)                       NGT Eq. 19"""
        return self._effective_field(self._state("m", m))

    def reaction(self, m: Tensor) -> Tensor:
        """The Onsager term of the TAP equations: m_i / temperature sum_j J_ij^2 (1 - m_j^2), for m (B, n)."""
        return self._reaction(self._state("m", m))

    def update(self, m: Tensor, correction: str = "naive") -> Tensor:
        """tanh(effective field / temperature): the undamped mean-field map (NGT Eq. 25), or the TAP one."""
        checks.choice("correction", correction, ("naive", "tap"))
        return self.image(self._state("m", m), correction)

    def image(self, m: Tensor, correction: str) -> Tensor:
        """`update` of what was checked before."""
        field = self._effective_field(m)
        if correction == "tap":
            field = field - self._reaction(m)
        return torch.tanh(field / self.temperature[:, None])

    def mapping(self, correction: str = "naive") -> Callable[[Tensor], Tensor]:
        """`update` as a function of a column (B, n, 1) that is 0 at padding, for loops.

        Fields and couplings are divided by the temperature once, here: the naive and the TAP equations at temperature
        T are those at temperature 1 with h / T and J / T.
        """
        fields = (self.fields / self.temperature[:, None])[..., None]
        couplings = self.couplings.scaled(1 / self.temperature)
        mask = None if self.mask is None else self.mask[..., None]

        def update(m: Tensor) -> Tensor:
            field = couplings.add_product(fields, m)
            if correction == "tap":
                slack = self._masked((1 - m.square()).squeeze(-1))
                field = field - m * couplings.squared_matvec(slack)[..., None]
            image = torch.tanh(field)  # NGT Eq. 25
            return image if mask is None else image * mask

        return update

    @full_precision
    def mean_field_free_energy(self, m: Tensor) -> Tensor:
        """H(m) - temperature * entropy(m), (B,): the bound that the mean-field equations make stationary.

        m: (B, n), within [-1, 1].
        """
        m = self._state("m", m)
        if not torch.compiler.is_compiling() and bool((m.detach().abs() > 1).any()):
            raise ValueError(f"m must lie within [-1, 1]; got numbers up to {float(m.abs().max()):.6g} in size")
        up, down = (1 + m) / 2, (1 - m) / 2
        entropy = -(torch.xlogy(up, up) + torch.xlogy(down, down))
        return self.energy(m) - self.temperature * self._masked(entropy).sum(-1)

    def detached(self) -> "Ising":
        """The same system with detached tensors."""
        twin = object.__new__(Ising)
        twin.batch, twin.spins, twin.mask = self.batch, self.spins, self.mask
        twin.fields, twin.temperature = self.fields.detach(), self.temperature.detach()
        twin.couplings = self.couplings.of([tensor.detach() for tensor in self.couplings.tensors()])
        return twin

    @full_precision
    def _effective_field(self, m: Tensor) -> Tensor:
        return self._masked(self.fields + self.couplings.matvec(self._masked(m)))

    def _reaction(self, m: Tensor) -> Tensor:
        slack = self._masked(1 - m.square())
        return m * self.couplings.squared_matvec(slack) / self.temperature[:, None]

    def _state(self, name: str, m: Tensor, dims: tuple[int, ...] = (2,)) -> Tensor:
        """Finite numbers (B, n) or (B, S, n) in the type of the fields, 0 at padding."""
        checks.floating(name, m, dims)
        if (m.shape[0], m.shape[-1]) != (self.batch, self.spins):
            middle = "[S,] " if 3 in dims else ""
            raise ValueError(f"{name} must have shape ({self.batch}, {middle}{self.spins}); got {tuple(m.shape)}")
        checks.finite(name, m)
        return self._masked(m.to(self.fields.dtype))

    def _masked(self, x: Tensor) -> Tensor:
        if self.mask is None:
            return x
        return x * (self.mask if x.dim() == 2 else self.mask[:, None])
