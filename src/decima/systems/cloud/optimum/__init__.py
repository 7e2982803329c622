"""Best placement of one workload: exact by busy periods, else searched; bounds."""
