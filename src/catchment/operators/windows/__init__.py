"""Windows of time, sessions and counts: which elements go together, and when what they hold is due.

What is done with them is `contents`: aggregates, or the top elements.
"""
