"""Planning: a rule is improved, while a run goes on, by simulating what it would lead to."""
