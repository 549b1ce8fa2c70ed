"""Attention as statistical physics.

`spinformer.games` values players of cooperative games, `spinformer.ising` solves Ising models, and
`spinformer.attention` makes attention layers of them. Importing the package needs torch alone; the
parts that need more import it when they are used.
"""

__version__ = "0.1.0"
