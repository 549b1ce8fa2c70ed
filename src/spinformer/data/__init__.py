"""Texts and images: reading them, splitting texts into words, tokenising, changing and corrupting them."""

from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words

__all__ = ["Texts", "Words", "load_texts", "split_words"]
