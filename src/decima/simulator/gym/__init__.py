"""The simulated cluster as a Gymnasium environment."""
