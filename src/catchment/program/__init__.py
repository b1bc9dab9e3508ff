"""What an author writes: records, expressions, streams, windows, functions and the program itself.

The lowest layer. It knows no plan, engine, clock, socket or randomness: a program is data.
"""
