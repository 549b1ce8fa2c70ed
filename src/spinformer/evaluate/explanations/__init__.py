"""How good explanations of a classifier are: faithfulness, exactness, stability, cost, fit of the game, highlights."""
