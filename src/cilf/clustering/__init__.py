"""Clustering: k-means around known classes, its validity, and the number of novel classes."""
