"""Identify: whether contrastive learning inverts a process that is known."""
