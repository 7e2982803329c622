"""Learned choice of the next node, by Lachesis or by Decima's network."""
