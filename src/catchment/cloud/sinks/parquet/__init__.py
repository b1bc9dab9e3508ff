"""Results as Parquet files under a list that says which of them count."""
