"""State in shards: only what a batch touches is read and written, and state is as large as what is remembered."""
