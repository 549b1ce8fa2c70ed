"""How good a classifier's answers are: accuracy with an interval, F1, calibration, and figures of them."""
