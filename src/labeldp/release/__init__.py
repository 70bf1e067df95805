"""Releases: from true labels to private ones, with a receipt, a budget and a way to run again."""

from labeldp.release.frames import FrameRelease, release_frame
from labeldp.release.ledger import Ledger
from labeldp.release.randomizer import LabelRandomizer, Release
from labeldp.release.receipt import Receipt

__all__ = ["FrameRelease", "LabelRandomizer", "Ledger", "Receipt", "Release", "release_frame"]
