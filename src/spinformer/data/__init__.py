"""Texts and images: reading them, splitting texts into words, tokenising, changing and corrupting them.

Names are imported when they are used: texts and files need no torch, words do.
"""

from typing import TYPE_CHECKING

from spinformer._base.lazy import lazy_attributes

if TYPE_CHECKING:
    from spinformer.data.sources import load_texts
    from spinformer.data.streams import TextStream, stream_rows, stream_texts
    from spinformer.data.texts import Texts
    from spinformer.data.words import Words, split_words

__all__ = ["TextStream", "Texts", "Words", "load_texts", "split_words", "stream_rows", "stream_texts"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "spinformer.data.sources": ("load_texts",),
        "spinformer.data.streams": ("TextStream", "stream_rows", "stream_texts"),
        "spinformer.data.texts": ("Texts",),
        "spinformer.data.words": ("Words", "split_words"),
    },
)
