"""Jobs, their profiles, and where they come from."""
