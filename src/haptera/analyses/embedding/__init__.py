"""Embedding: what a recording encodes, with the controls that a reader will ask for."""
