"""What the verbs need of each system: options, texts of results, charts."""
