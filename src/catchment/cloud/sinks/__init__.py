"""Where results go: each sink takes an epoch of an output once, by (program, query, generation, epoch, log range)."""
