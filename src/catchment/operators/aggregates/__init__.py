"""Aggregates by summaries: small plain data that elements are added to, and that merge.

One merge serves panes of a window, a session that two others become, and partial results of many peers.
"""
