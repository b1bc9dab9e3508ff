"""What runs the parts: one folder per engine, one contract for all of them.

An engine knows the layers below it: program, plan, operators. The reference engine, which judges the others, knows
neither them nor the operators.
"""
