"""Sessions: several recordings in one embedding, and a new recording fitted to an embedding that is there."""
