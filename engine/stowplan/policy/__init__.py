"""A compiled configuration over a cluster: decisions with their reasons."""
