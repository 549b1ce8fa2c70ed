"""Training of text classifiers with transformers' Trainer.

`recipe` has the options, `train` the run, `trainer` the loss and the optimizer, `grounded_objective` the loss of a
classifier that learns together with its game head, `model_card` the README.md of the result.
"""
