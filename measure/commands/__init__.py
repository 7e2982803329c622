"""Commands of the measuring tools, one module each."""
