"""Low-rank couplings of a game, in the form that its vectors have."""

from spinformer.games import NormGame, low_rank_from_sums
from spinformer.games.norm import Sums
from spinformer.games.twins import mean_of_twins
from spinformer.ising import Couplings, LowRankCouplings
from spinformer.kernels.factors import LARGEST_RANK
from spinformer.kernels.gathered import gathered_of, set_gathered
from spinformer.kernels.narrow import PADDED, directions


def low_rank_couplings(game: NormGame, sums: Sums) -> Couplings:
    """J = U diag(w) U', U = (V, A), from the sums of K coalitions of equal weights; or the matrix, where it is smaller

    Where 16 bits are all that there is of V, V is not made wider.
    """
    narrow, gathered = game.narrow, gathered_of(game.given)
    if narrow is None or gathered is None or not _fits(game, narrow.shape[2] + sums.products.shape[1]):
        return LowRankCouplings.smaller(*low_rank_from_sums(game, sums))
    given = (sums.products, sums.inside, sums.square.squeeze(-1), game.squares, game.scale)
    others, weights, diagonal = directions(*given, narrow.shape[2])
    twins = game.twins()
    if twins is not None:
        others = mean_of_twins(others.mT, twins).mT.contiguous()
        own = (others.square() * weights[:, None, narrow.shape[2] :]).sum(-1)
        diagonal = (weights[:, :1] * game.squares + own).detach()
    return LowRankCouplings.smaller(set_gathered(others, gathered), weights, diagonal, narrow, game.given)


def _fits(game: NormGame, rank: int) -> bool:
    """Whether there are kernels for such a game and so many columns."""
    return game.activation in ("identity", "relu") and rank + PADDED <= LARGEST_RANK
