"""Statistics: intervals, resampling, lines, moments and power laws; NumPy in, NumPy out."""
