"""How good explanations of a classifier are: faithfulness, stability, cost, fit of the game, human highlights."""
