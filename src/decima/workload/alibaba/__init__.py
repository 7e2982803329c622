"""Alibaba cluster trace v2018: one hour, raw files, and a generator of similar jobs."""
