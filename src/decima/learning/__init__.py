"""Training of the policy: recipes, tasks, rollouts, advantages, gradients, checkpoints (§5.3, appendices B and C)."""
