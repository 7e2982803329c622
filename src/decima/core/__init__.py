"""Parts that all systems share: typed records, event heaps, random streams, decisions, kernel caches."""
