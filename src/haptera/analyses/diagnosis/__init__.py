"""Diagnosis: whether unlabelled data has shifted, where in the network, and what it will cost."""
