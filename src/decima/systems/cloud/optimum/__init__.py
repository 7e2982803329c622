"""The best placement of one workload: exact by busy periods, searched where these are too long, and bounds."""
