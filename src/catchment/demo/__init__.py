"""What `make demo` shows: a program that is small enough to read, on a fleet that is made up as it goes."""
