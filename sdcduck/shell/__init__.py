"""The shell: a terminal for analysts, in front of a file or of a gateway. Every question goes through the guard."""
