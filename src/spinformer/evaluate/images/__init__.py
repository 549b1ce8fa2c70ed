"""Attractor networks on corrupted images: what a run does step by step, as pictures and energies."""
