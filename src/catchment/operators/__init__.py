"""What a step does, element by element: one operator per file, deterministic, without clock, socket or Spark."""
