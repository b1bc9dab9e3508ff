"""The cloud part on Apache Spark's Structured Streaming.

Importing this package costs nothing: PySpark and pyarrow are imported by the modules that use them.
"""
