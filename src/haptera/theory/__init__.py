"""The small analytic models of the sources, one file each."""
