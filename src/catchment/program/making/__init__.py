"""What each method of a stream checks, and the step that it makes: one file per family of steps.

Knows schemas, expressions and steps as data; knows no stream, no program and no file but the author's line.
"""
