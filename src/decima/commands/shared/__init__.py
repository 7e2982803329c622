"""Parts that commands share: options, errors, output files."""
