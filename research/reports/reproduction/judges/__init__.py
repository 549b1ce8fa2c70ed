"""Judges: functions from outcomes of results to findings. Their limits are constants, which the entries state."""
