"""Results as rows of a PostgreSQL table: copied, and marked, in one transaction."""
