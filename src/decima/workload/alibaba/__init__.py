"""The Alibaba cluster trace v2018: one hour of it, raw files of one's own, and a generator of jobs like it."""
