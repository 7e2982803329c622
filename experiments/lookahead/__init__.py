"""Planning by copies of the running cluster: gain of plans over their base heuristics."""
