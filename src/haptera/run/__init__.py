"""Run: cells of a study, the loop, and what keeps finished work."""
