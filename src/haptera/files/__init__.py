"""Files: written whole, read with limits, every failure naming the file."""
