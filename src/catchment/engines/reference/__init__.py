"""Slow and obvious: definitions evaluated over whole inputs, the oracle of every other engine."""
