"""TPC-H traces of the authors: fetching, raw files and job profiles."""
