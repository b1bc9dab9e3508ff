"""The cloud side of a program: from the log through Spark to sinks, supervised. Knows gateways and engines."""
