"""Questions that stay encrypted: nearest neighbours by whole numbers, and the same under a homomorphic encryption."""
