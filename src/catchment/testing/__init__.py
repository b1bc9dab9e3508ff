"""For tests of programs: one step alone, sources that pause or end on cue, a clock that jumps, golden vectors."""
