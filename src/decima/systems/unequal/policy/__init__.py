"""The learned choice of the next node: Lachesis, and Decima's network in its place."""
