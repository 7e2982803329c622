"""Parts that several commands share: options, errors in one sentence, output files, and schedulers of texts."""
