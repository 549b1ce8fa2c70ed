"""What the numbers that a model puts out mean, for those who compute with them and those who show them."""

from typing import Literal

# One of several classes; several labels at once; scores. See `spinformer.models.outputs`.
Outputs = Literal["classes", "labels", "scores"]
# The probability from which on a label counts as on.
ON = 0.5
