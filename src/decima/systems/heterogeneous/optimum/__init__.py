"""What is possible on an instance: bounds, exact optima, searched priorities."""
