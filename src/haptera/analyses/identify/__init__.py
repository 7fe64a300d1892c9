"""Identify: does contrastive learning find latents that are known?"""
