"""Planning: improving a rule during a run by simulating its consequences."""
