"""Ratios against named rivals, measured in one run: `make bench`."""
