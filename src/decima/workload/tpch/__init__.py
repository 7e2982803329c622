"""The authors' TPC-H traces: fetching them, reading the raw files, and the job profiles made of them."""
