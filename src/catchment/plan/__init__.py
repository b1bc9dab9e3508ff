"""What a program becomes: a graph, checked, rewritten, placed at sites, cut into parts. Frozen; no I/O, no clock."""
