"""Learned placement: networks, their compiled inference, and what DQN and policy gradients train them with."""
