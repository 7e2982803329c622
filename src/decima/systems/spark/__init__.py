"""The cluster simulator: settings, compiled core, results."""
