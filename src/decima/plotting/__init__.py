"""Figures from tidy frames: nothing here simulates, and nothing else in the package imports matplotlib."""
