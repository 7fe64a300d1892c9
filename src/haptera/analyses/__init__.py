"""Analyses: one folder for each question, with its mathematics, its findings and its page."""
