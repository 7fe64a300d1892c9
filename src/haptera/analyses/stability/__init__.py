"""Stability: how networks respond to smooth deformations, relative to noise of the same norm."""
