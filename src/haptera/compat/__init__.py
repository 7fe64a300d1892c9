"""Compat: scripts written for other packages, with the import changed."""
