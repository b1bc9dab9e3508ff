"""One report on Sonora's evaluation: every table and figure of its section 5, and ours beside it."""
