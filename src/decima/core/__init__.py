"""Parts of compiled simulators that know no simulator: typed records, event heaps, chance, decisions, kernel caches."""
