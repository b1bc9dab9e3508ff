"""Sources that Spark reads by itself, for programs that start in the cloud."""
