"""Planning by copies of the running cluster: what plans gain over the rules they start from."""
